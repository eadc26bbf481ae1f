/* The tables of a tree, by their number (rows.h).
 *
 * Ownership: the caller's buffer. Threads: one at a time. Cost: a pass over what the table is about.
 */
#ifndef PERFLAW_EXPORT_H
#define PERFLAW_EXPORT_H

#include "rows.h"

/* As core_export and core_row_size. All batches of the tree must be settled (repeats.h). */
size_t export_table(const Tree *tree, uint32_t table, void *buffer, size_t size);
size_t export_row_size(uint32_t table);

#endif
