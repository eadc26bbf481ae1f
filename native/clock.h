/* Nanoseconds of CLOCK_MONOTONIC at the price of the TSC, where the processor keeps it constant; else the clock itself.
 *
 * Ownership: the caller's struct, no globals. Threads: clock_ns only reads, so all threads may share one clock.
 * Cost: clock_start takes 5 ms where it calibrates; clock_ns about 8 ns by TSC, 20 ns plain.
 */
#ifndef PERFLAW_CLOCK_H
#define PERFLAW_CLOCK_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { CLOCK_PLAIN, CLOCK_TSC, CLOCK_FAKE };

typedef struct Clock {
    int kind;
    uint64_t base_ticks, multiplier; /* ns = base_ns + (ticks - base_ticks) * multiplier / 2^32 */
    int64_t base_ns;
    const int64_t *fake; /* CLOCK_FAKE: what time it is, owned by the test */
} Clock;

/* Choose the best clock of this machine and calibrate it. Returns why, in words, for `perflaw doctor`. */
const char *clock_start(Clock *clock);
/* A clock that shows *now. */
Clock clock_fake(const int64_t *now);
int64_t clock_plain_ns(void);
/* Step of a clock, ns: what readings differ by multiples of. Some processors' TSC counts in steps of ten ns, a fraction of
 * which is only rounding. At least 1, for stamps are whole; 1 for a fake clock. Cost: 300 us. */
double clock_tick(const Clock *clock);

static inline int64_t clock_of_ticks(const Clock *clock, uint64_t ticks) {
    /* Signed, since a thread on another core may read a few ticks less than the base. */
    __int128 passed = (__int128)(int64_t)(ticks - clock->base_ticks) * (__int128)clock->multiplier;
    return clock->base_ns + (int64_t)(passed >> 32);
}

static inline int64_t clock_ns(const Clock *clock) {
#if defined(__x86_64__)
    if (clock->kind == CLOCK_TSC) return clock_of_ticks(clock, __rdtsc());
#endif
    return clock->kind == CLOCK_FAKE ? *clock->fake : clock_plain_ns();
}

#endif
