/* Cells of lanes: short lists that hang only where something of a metric was seen, see layout.h.
 * Ownership: the arena's. Threads: one at a time. Cost: a walk over the metrics seen at that place, one to three. */
#ifndef PERFLAW_LANES_H
#define PERFLAW_LANES_H

#include "layout.h"

/* The cell of a metric, NULL if there is none. */
void *lane_find(const Lane *list, uint64_t metric);
/* The cell of a metric, made (zero but for its head) if new; NULL if the arena is full. */
void *lane_of(Arena *arena, Lane **list, uint64_t metric, uint64_t size);

/* The value of a metric in a list of Change, 0 where it has none. */
int64_t lane_value(const Lane *changes, uint64_t metric);
/* Add to the value of a metric. */
void lane_change(Arena *arena, Lane **changes, uint64_t metric, int64_t value);
/* Add every value of a list of Change to another list. */
void lane_merge(Arena *arena, Lane **changes, const Lane *from);
/* Forget a list of Change. */
void lane_clear(Arena *arena, Lane **changes);

#endif
