/* Exact arithmetic of costs. Nothing is ever rounded, and whatever a torn record holds has a defined result.
 *
 * Ownership: none, for all are pure functions. Threads: any. Cost: some instructions each.
 */
#ifndef PERFLAW_EXACT_H
#define PERFLAW_EXACT_H

#include <stdint.h>

typedef unsigned __int128 Sum; /* two's complement if a cost can be negative */

/* a + b and a - b, which wrap instead of overflowing if a torn record holds nonsense. */
static inline int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline Sum product(int64_t a, int64_t b) { return (Sum)((__int128)a * b); }
static inline Sum widen(int64_t a) { return (Sum)(__int128)a; }

/* Bits of the absolute value. */
static inline unsigned bit_length(int64_t x) {
    uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
    return size ? 64u - (unsigned)__builtin_clzll(size) : 0;
}

/* The bucket of a cost in a histogram with four buckets to a power of two. A quarter of it is the stratum. */
static inline unsigned log_bucket(int64_t x) {
    unsigned bits;
    if (x >= 4) { /* the usual way */
        bits = 61u - (unsigned)__builtin_clzll((uint64_t)x);
        return bits * 4 + (unsigned)(x >> bits) + 8;
    }
    bits = bit_length(x);
    return bits * 4 + (bits >= 3 ? (unsigned)(x >> (bits - 3)) & 3 : 0);
}

typedef struct Extremes {
    int64_t least, most;
} Extremes;

/* Include a value in extremes over n values so far. The most is at least 0. */
static inline void extremes_include(Extremes *extremes, uint64_t n, int64_t x) {
    if (!n || x < extremes->least) extremes->least = x;
    if (x > extremes->most) extremes->most = x;
}

#endif
