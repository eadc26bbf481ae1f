/* Cells of lanes: short lists that hang only where something of a metric was seen (tree.h).
 *
 * Ownership: the arena's. Threads: one at a time. Cost: a walk over the metrics seen at that place, of which there are
 * one to three.
 */
#ifndef PERFLAW_LANES_H
#define PERFLAW_LANES_H

#include "tree.h"

/* The cell of a metric, NULL if there is none. */
void *lane_find(const Lane *list, uint64_t metric);
/* The cell of a metric, of `size` bytes; a new one is zero except for its Lane. NULL if the arena is full. */
void *lane_ensure(Arena *arena, Lane **list, uint64_t metric, uint64_t size);

/* The value of a metric in a list of Change, 0 if it has none. */
int64_t lane_value(const Lane *changes, uint64_t metric);
/* Add to the value of a metric. */
void lane_add(Arena *arena, Lane **changes, uint64_t metric, int64_t value);
/* Add all values of a list of Change to another list. */
void lane_merge(Arena *arena, Lane **changes, const Lane *from);
/* Free a list of Change. */
void lane_clear(Arena *arena, Lane **changes);

#endif
