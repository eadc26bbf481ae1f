/* Exact raw moments of one call-tree node (specs: Moments). Integers only; nothing is ever rounded.
 *
 * Ownership: all sums lie in the arena. Threads: as the arena. Cost of moments_add: a leaf writes its node and one
 * bucket; else one 32-byte pair per two touched children, one 112-byte link per descendant within max_distance.
 */
#ifndef PERFLAW_MOMENTS_H
#define PERFLAW_MOMENTS_H

#include "arena.h"

/* Take in a completed invocation of cost x; its local time x - sum(kids). The node's n is stored last. */
int64_t moments_add(Arena *arena, Node *node, int64_t x, const Bag *kids, const Bag *deeper);
/* Take in how long a completed generator or coroutine was suspended. */
void moments_wait(Arena *arena, Node *node, int64_t waited);

static inline unsigned bit_length(int64_t x) {
    uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
    return size ? 64u - (unsigned)__builtin_clzll(size) : 0;
}

/* Bucket of a log histogram: four to a power of two. */
static inline unsigned log_bucket(int64_t x) {
    unsigned bits = bit_length(x);
    return bits * 4 + (bits >= 3 ? (unsigned)(x >> (bits - 3)) & 3 : 0);
}

#endif
