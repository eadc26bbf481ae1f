#include "log_histogram.h"

#include <string.h>

/* ---- whole logarithms ---- */

/* The whole part of a square root, one bit at a time. */
static uint64_t square_root(unsigned __int128 square) {
    uint64_t root = 0;
    for (uint64_t bit = 1ull << 63; bit; bit >>= 1) {
        unsigned __int128 larger = root | bit;
        if (larger * larger <= square) root |= bit;
    }
    return root;
}

/* 2^(63 + j/1024) as a product of roots of two; no floating-point library is as exact. */
static uint64_t bound_of(const uint64_t *roots, unsigned j) {
    uint64_t bound = 1ull << 63;
    for (unsigned bit = 0; bit < LOG_BITS; bit++)
        if (j >> (LOG_BITS - 1 - bit) & 1) bound = (uint64_t)((unsigned __int128)bound * roots[bit] >> 63);
    return bound + (j > 0);
}

void log_table_fill(LogTable *table) {
    uint64_t roots[LOG_BITS], before = 0; /* 2^(63 + 1/2), 2^(63 + 1/4), ... */
    for (unsigned bit = 0; bit < LOG_BITS; bit++)
        before = roots[bit] = square_root(bit ? (unsigned __int128)before << 63 : (unsigned __int128)1 << 127);
    for (unsigned j = 0; j < LOG_UNIT; j++) table->bounds[j] = bound_of(roots, j);
    table->bounds[LOG_UNIT] = UINT64_MAX;
    for (unsigned cell = 0, j = 0; cell < LOG_UNIT; cell++) {
        uint64_t begin = (1ull << 63) + ((uint64_t)cell << (63 - LOG_BITS));
        while (table->bounds[j + 1] <= begin) j++;
        table->guess[cell] = (uint16_t)j;
    }
}

/* ---- histograms ---- */

enum { MIN_LENGTH = 16 };

typedef struct Range {
    int32_t low, high; /* both included */
} Range;

/* The range of the buckets that are not empty, and of one more. */
static Range range_with(const LogHistogram *histogram, int32_t index) {
    uint32_t first = 0, end = histogram->length;
    while (first < end && !histogram->counts[first]) first++;
    while (end > first && !histogram->counts[end - 1]) end--;
    Range range = {index, index};
    if (first == end) return range;
    int32_t low = histogram->low + (int32_t)first, high = histogram->low + (int32_t)end - 1;
    return (Range){low < index ? low : index, high > index ? high : index};
}

/* Make the buckets 2^steps times as wide. */
static void coarsen(LogHistogram *histogram, unsigned steps) {
    int32_t low = histogram->low >> steps;
    for (uint32_t at = 0; at < histogram->length; at++) {
        uint32_t count = histogram->counts[at], to = (uint32_t)(((histogram->low + (int32_t)at) >> steps) - low);
        histogram->counts[at] = 0;
        histogram->counts[to] += count; /* to <= at, and what is between was moved already */
    }
    if (histogram->length)
        histogram->length = (uint32_t)(((histogram->low + (int32_t)histogram->length - 1) >> steps) - low) + 1;
    histogram->low = low;
    histogram->scale -= (int32_t)steps;
}

/* Make an array for this range, with spare room on the side on which it grew. */
static int enlarge(Arena *arena, LogHistogram *histogram, Range range, int32_t index) {
    uint32_t span = (uint32_t)(range.high - range.low) + 1, length = MIN_LENGTH;
    while (length < span) length *= 2;
    if (length > MAX_BUCKETS) length = MAX_BUCKETS;
    int32_t low = index == range.high ? range.low : range.high - (int32_t)length + 1;
    uint32_t *old = histogram->counts, *new = arena_alloc(arena, length * sizeof(uint32_t));
    if (!new) return 0;
    for (uint32_t at = 0; at < histogram->length; at++)
        if (old[at]) new[histogram->low + (int32_t)at - low] = old[at];
    arena_free(arena, old, histogram->capacity * sizeof(uint32_t));
    histogram->counts = new;
    histogram->low = low;
    histogram->length = histogram->capacity = length;
    return 1;
}

int log_histogram_add_many(Arena *arena, LogHistogram *histogram, int32_t scale, int32_t index, uint32_t count) {
    if (scale < histogram->scale) coarsen(histogram, (unsigned)(histogram->scale - scale));
    index >>= scale - histogram->scale;
    int64_t at = (int64_t)index - histogram->low;
    if ((uint64_t)at >= histogram->length) {
        Range range = range_with(histogram, index);
        unsigned steps = 0;
        while ((range.high >> steps) - (range.low >> steps) >= MAX_BUCKETS) steps++;
        if (steps) coarsen(histogram, steps);
        range = (Range){range.low >> steps, range.high >> steps};
        index >>= steps;
        at = (int64_t)index - histogram->low;
        if ((uint64_t)at >= histogram->length && !enlarge(arena, histogram, range, index)) return 0;
        at = (int64_t)index - histogram->low;
    }
    histogram->counts[at] += count;
    return 1;
}
