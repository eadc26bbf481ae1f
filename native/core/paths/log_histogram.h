/* Histograms of durations with exponential buckets, as OpenTelemetry's, and the whole logarithms by which a duration
 * finds its bucket.
 *
 * Bucket i of scale s holds what is above 2^(i / 2^s) and at most 2^((i + 1) / 2^s). A histogram begins at the finest
 * scale; if it would have more than MAX_BUCKETS, neighbours are merged and the scale is one less. So it depends only on
 * what it holds, not on the order.
 *
 * Ownership: counts lie in the arena, the table of logarithms is the caller's. Threads: one at a time; all may read one
 * table. Cost: a logarithm 3 ns; a count 1 ns if the bucket is within the window.
 */
#ifndef PERFLAW_LOG_HISTOGRAM_H
#define PERFLAW_LOG_HISTOGRAM_H

#include "core/base/arena.h"

/* ---- whole logarithms: floor(1024 log2 x), exact below 2^50 (13 days in ns) ---- */

enum { LOG_BITS = 10, LOG_UNIT = 1 << LOG_BITS };

typedef struct LogTable {
    uint64_t bounds[LOG_UNIT + 1]; /* 2^(63 + j/1024), rounded up; the last is larger than any number */
    /* by cell of 1/1024 of the mantissa: the largest j whose bound is not above its beginning */
    uint16_t guess[LOG_UNIT];
} LogTable;

void log_table_fill(LogTable *table);

/* The whole logarithm of x > 0. Within a cell of the mantissa the logarithm passes at most two bounds. */
static inline uint32_t log_of(const LogTable *table, uint64_t x) {
    unsigned bits = 63u - (unsigned)__builtin_clzll(x);
    uint64_t mantissa = x << (63 - bits);
    uint32_t at = table->guess[mantissa >> (63 - LOG_BITS) & (LOG_UNIT - 1)];
    at += mantissa >= table->bounds[at + 1];
    at += mantissa >= table->bounds[at + 1];
    return bits * LOG_UNIT + at;
}

/* ---- histograms ---- */

enum { MAX_SCALE = 10, MAX_BUCKETS = 640 };

typedef struct LogHistogram {
    int32_t scale, low;        /* low: index of the bucket that counts[0] counts */
    uint32_t length, capacity; /* counts in use, and room for counts */
    uint32_t zeros, unused;
    uint32_t *counts;
} LogHistogram;

/* Count `count` calls in a bucket of any scale. 0 if the arena is full. */
int log_histogram_add_many(Arena *arena, LogHistogram *histogram, int32_t scale, int32_t index, uint32_t count);
/* Count one call in a bucket of the finest scale. */
static inline void log_histogram_add(Arena *arena, LogHistogram *histogram, int32_t index) {
    int64_t at = (int64_t)(index >> (MAX_SCALE - histogram->scale)) - histogram->low;
    if ((uint64_t)at < histogram->length) histogram->counts[at]++;
    else log_histogram_add_many(arena, histogram, MAX_SCALE, index, 1);
}
/* Forget what it holds and keep the memory. */
static inline void log_histogram_clear(LogHistogram *histogram) {
    histogram->scale = MAX_SCALE;
    histogram->length = histogram->zeros = 0;
}
/* Give the memory back. */
static inline void log_histogram_free(Arena *arena, LogHistogram *histogram) {
    arena_free(arena, histogram->counts, histogram->capacity * sizeof(uint32_t));
    *histogram = (LogHistogram){.scale = MAX_SCALE};
}

#endif
