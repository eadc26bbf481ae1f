/* Rows of nodes, their pairs and their links.
 *
 * Ownership: the sink's. Threads: one at a time. Cost: a pass over what the table is about.
 */
#ifndef PERFLAW_EXPORT_NODES_H
#define PERFLAW_EXPORT_NODES_H

#include "rows.h"

void export_nodes(const Tree *tree, uint32_t table, RowSink *sink);
void export_pairs(const Tree *tree, uint32_t table, RowSink *sink);
void export_links(const Tree *tree, uint32_t table, RowSink *sink);

#endif
