/* Rows of durations by call path: observations of functions, and pieces of paths with their buckets and batches.
 *
 * Ownership: the sink's. Threads: one at a time. Cost: a pass over what the table is about.
 */
#ifndef PERFLAW_EXPORT_PATHS_H
#define PERFLAW_EXPORT_PATHS_H

#include "rows.h"

void export_paths(const Tree *tree, uint32_t table, RowSink *sink);

#endif
