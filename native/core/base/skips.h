/* Which invocations are candidates for a uniform sample, at the cost of a countdown for all others.
 *
 * A bottom-k sample draws a priority for every invocation and keeps the smallest ones. Here only the number of
 * invocations is drawn that come before the next one whose priority is small enough (Vitter's skips; geometric, because
 * the bound is fixed in between). The bound is a power of two. It is halved as soon as enough priorities are below half
 * of it, which counting them by their length in bits tells exactly.
 *
 * Ownership: the caller's; zeroed Skips are new. Threads: one at a time. Cost: a draw takes 50 ns, and is seldom
 * needed.
 */
#ifndef PERFLAW_SKIPS_H
#define PERFLAW_SKIPS_H

#include <stdint.h>

enum { SKIPS_SAMPLE_SIZE = 512, SKIPS_MANY = 256, SKIPS_BITS = 31 };

typedef struct Skips {
    uint32_t drawn[SKIPS_BITS + 1]; /* number of priorities drawn, by their length in bits */
    uint32_t halvings;              /* candidates have priorities of at most SKIPS_BITS - halvings bits */
} Skips;

/* A random number (SplitMix64). */
uint64_t skips_random(uint64_t *state);
/* Size of the sample of each function where so many are sampled. The reservoir keeps no more (core/tree/reservoir.h). A
 * fifth of the functions may have no complete invocation, which the reservoir does not count. */
uint32_t skips_sample_size(uint32_t functions);
/* The priority of a candidate, for a sample of this size. Samples may become smaller, never larger. */
int32_t skips_draw(Skips *skips, uint32_t size, uint64_t *state);
/* The number of ordinary invocations before the next candidate. */
int64_t skips_next(const Skips *skips, uint64_t *state);

#endif
