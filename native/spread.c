#include "spread.h"

#include <string.h>

enum { LEAST = 16 };

typedef struct Range {
    int32_t low, high; /* both included */
} Range;

/* Indices of the first and the last bucket that is not empty, and of one more. */
static Range range_with(const Spread *spread, int32_t index) {
    uint32_t first = 0, end = spread->length;
    while (first < end && !spread->counts[first]) first++;
    while (end > first && !spread->counts[end - 1]) end--;
    Range range = {index, index};
    if (first == end) return range;
    int32_t low = spread->low + (int32_t)first, high = spread->low + (int32_t)end - 1;
    return (Range){low < index ? low : index, high > index ? high : index};
}

static void put_together(Spread *spread, unsigned steps) {
    int32_t low = spread->low >> steps;
    for (uint32_t at = 0; at < spread->length; at++) {
        uint32_t count = spread->counts[at], to = (uint32_t)(((spread->low + (int32_t)at) >> steps) - low);
        spread->counts[at] = 0;
        spread->counts[to] += count; /* to <= at, and what lies between was moved already */
    }
    if (spread->length) spread->length = (uint32_t)(((spread->low + (int32_t)spread->length - 1) >> steps) - low) + 1;
    spread->low = low;
    spread->scale -= (int32_t)steps;
}

/* A window for this range; room is left on the side on which it grew. */
static int widen(Arena *arena, Spread *spread, Range range, int32_t index) {
    uint32_t span = (uint32_t)(range.high - range.low) + 1, length = LEAST;
    while (length < span) length *= 2;
    if (length > MOST_BUCKETS) length = MOST_BUCKETS;
    int32_t low = index == range.high ? range.low : range.high - (int32_t)length + 1;
    uint32_t *old = spread->counts, *new = arena_alloc(arena, length * sizeof(uint32_t));
    if (!new) return 0;
    for (uint32_t at = 0; at < spread->length; at++)
        if (old[at]) new[spread->low + (int32_t)at - low] = old[at];
    arena_free(arena, old, spread->capacity * sizeof(uint32_t));
    spread->counts = new;
    spread->low = low;
    spread->length = spread->capacity = length;
    return 1;
}

int spread_put(Arena *arena, Spread *spread, int32_t scale, int32_t index, uint32_t count) {
    if (scale < spread->scale) put_together(spread, (unsigned)(spread->scale - scale));
    index >>= scale - spread->scale;
    int64_t at = (int64_t)index - spread->low;
    if ((uint64_t)at >= spread->length) {
        Range range = range_with(spread, index);
        unsigned steps = 0;
        while ((range.high >> steps) - (range.low >> steps) >= MOST_BUCKETS) steps++;
        if (steps) put_together(spread, steps);
        range = (Range){range.low >> steps, range.high >> steps};
        index >>= steps;
        at = (int64_t)index - spread->low;
        if ((uint64_t)at >= spread->length && !widen(arena, spread, range, index)) return 0;
        at = (int64_t)index - spread->low;
    }
    spread->counts[at] += count;
    return 1;
}
