/* Which invocations are candidates for a uniform sample, at the cost of counting down for all the others.
 *
 * A bottom-k sample draws a priority for every invocation and keeps the smallest. Drawn here instead is how many
 * invocations come before the next whose priority is small enough (Vitter's skips; geometric, for the bound is fixed in
 * between). The bound is a power of two: it is halved as soon as enough priorities lie below half of it, which counting
 * them by their length in bits tells exactly.
 *
 * Ownership: the caller's. Threads: one at a time. Cost: a draw 50 ns, seldom needed.
 */
#ifndef PERFLAW_SKIPS_H
#define PERFLAW_SKIPS_H

#include <stdint.h>

enum { SKIPS_KEPT = 512, SKIPS_BITS = 31 };

typedef struct Skips {
    uint32_t drawn[SKIPS_BITS + 1]; /* how many priorities of so many bits were drawn */
    uint32_t above;                 /* candidates have priorities of at most SKIPS_BITS - above bits */
} Skips;

/* SplitMix64. */
uint64_t skips_chance(uint64_t *state);
/* The priority of a candidate. */
int32_t skips_draw(Skips *skips, uint64_t *state);
/* How many ordinary invocations come before the next candidate. */
int64_t skips_next(const Skips *skips, uint64_t *state);

#endif
