/* A histogram of durations with exponential buckets, as OpenTelemetry's: bucket i of scale s holds what is above
 * 2^(i / 2^s) and at most 2^((i + 1) / 2^s). It begins at the finest scale; where it would have more than MOST_BUCKETS,
 * neighbours are put together and the scale is one less. So it depends on what it holds alone, not on the order.
 *
 * Ownership: counts lie in the arena. Threads: one at a time. Cost: 1 ns where the bucket is within the window.
 */
#ifndef PERFLAW_SPREAD_H
#define PERFLAW_SPREAD_H

#include "arena.h"

enum { MOST_SCALE = 10, MOST_BUCKETS = 640 };

typedef struct Spread {
    int32_t scale, low;        /* low: index of counts[0] */
    uint32_t length, capacity; /* counts that mean something; that there is room for */
    uint32_t zeros, unused;
    uint32_t *counts;
} Spread;

/* Add count calls of a bucket of any scale. 0 if the arena is full. */
int spread_put(Arena *arena, Spread *spread, int32_t scale, int32_t index, uint32_t count);
/* Count a call of a bucket of the finest scale. */
static inline void spread_add(Arena *arena, Spread *spread, int32_t index) {
    int64_t at = (int64_t)(index >> (MOST_SCALE - spread->scale)) - spread->low;
    if ((uint64_t)at < spread->length) spread->counts[at]++;
    else spread_put(arena, spread, MOST_SCALE, index, 1);
}
/* Forget what it holds; its memory stays. */
static inline void spread_clear(Spread *spread) {
    spread->scale = MOST_SCALE;
    spread->length = spread->zeros = 0;
}
/* Give its memory back. */
static inline void spread_free(Arena *arena, Spread *spread) {
    arena_free(arena, spread->counts, spread->capacity * sizeof(uint32_t));
    *spread = (Spread){.scale = MOST_SCALE};
}

#endif
