/* Exact arithmetic of costs: nothing is ever rounded, and nothing that a torn record holds is undefined.
 *
 * Ownership: none, all are pure functions. Threads: any. Cost: some instructions each.
 */
#ifndef PERFLAW_EXACT_H
#define PERFLAW_EXACT_H

#include <stdint.h>

typedef unsigned __int128 Sum; /* exact; two's complement where a cost can be negative */

/* a + b and a - b, which wrap instead of overflowing where a torn record holds nonsense. */
static inline int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t since(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline Sum product(int64_t a, int64_t b) { return (Sum)((__int128)a * b); }
static inline Sum widened(int64_t a) { return (Sum)(__int128)a; }

static inline unsigned bit_length(int64_t x) {
    uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
    return size ? 64u - (unsigned)__builtin_clzll(size) : 0;
}

/* Bucket of a log histogram: four to a power of two. A quarter of it is the stratum. */
static inline unsigned log_bucket(int64_t x) {
    unsigned bits;
    if (x >= 4) return bits = 61u - (unsigned)__builtin_clzll((uint64_t)x), bits * 4 + (unsigned)(x >> bits) + 8; /* the usual way */
    bits = bit_length(x);
    return bits * 4 + (bits >= 3 ? (unsigned)(x >> (bits - 3)) & 3 : 0);
}

typedef struct Extremes {
    int64_t least, most;
} Extremes;

/* Widen extremes by a value, the first of all where n is 0. The most is at least 0. */
static inline void extremes_see(Extremes *extremes, uint64_t n, int64_t x) {
    if (!n || x < extremes->least) extremes->least = x;
    if (x > extremes->most) extremes->most = x;
}

#endif
