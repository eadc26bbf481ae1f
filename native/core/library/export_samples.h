/* Rows of the samples, and of the worst invocations with their spans: each once, by function and in order of
 * completion.
 *
 * Ownership: the sink's. Threads: one at a time. Cost: a pass over what the table is about.
 */
#ifndef PERFLAW_EXPORT_SAMPLES_H
#define PERFLAW_EXPORT_SAMPLES_H

#include "rows.h"

void export_samples(const Tree *tree, uint32_t table, RowSink *sink);
void export_worst(const Tree *tree, uint32_t table, RowSink *sink);

#endif
