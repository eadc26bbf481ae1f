/* Nanoseconds of CLOCK_MONOTONIC at the price of the TSC, if the processor keeps it constant; else the clock itself.
 *
 * Ownership: the caller's struct; there are no globals. Threads: clock_ns only reads, so all threads may share one
 * clock. Cost: clock_start takes 5 ms if it calibrates; clock_ns about 8 ns by TSC, 20 ns by the plain clock.
 */
#ifndef PERFLAW_CLOCK_H
#define PERFLAW_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { CLOCK_PLAIN, CLOCK_TSC, CLOCK_FAKE };

typedef struct Clock {
    int kind;
    uint64_t base_ticks, multiplier; /* ns = base_ns + (ticks - base_ticks) * multiplier / 2^32 */
    int64_t base_ns;
    const int64_t *fake; /* CLOCK_FAKE: the time it shows, owned by the test */
} Clock;

/* Choose the best clock of this machine and calibrate it. Gives the reason, in words, for `perflaw doctor`. */
const char *clock_start(Clock *clock);
/* A clock that shows *now. */
Clock clock_fake(const int64_t *now);
int64_t clock_plain_ns(void);
/* The step of a clock in ns: all differences of readings are multiples of it. Some processors' TSC counts in steps
 * of ten ns, of which a fraction is only rounding. The step is at least 1, because stamps are whole, and 1 for a
 * fake clock. Cost: 300 us. */
double clock_step_ns(const Clock *clock);

static inline int64_t clock_of_ticks(const Clock *clock, uint64_t ticks) {
    /* Signed, because a thread on another core may read some ticks less than the base. */
    __int128 passed = (__int128)(int64_t)(ticks - clock->base_ticks) * (__int128)clock->multiplier;
    return clock->base_ns + (int64_t)(passed >> 32);
}

/* The compiler's builtin is used, because <x86intrin.h> would add 1.5 MB of text to each file that includes this one. */
static inline int64_t clock_ns(const Clock *clock) {
#if defined(__x86_64__)
    if (clock->kind == CLOCK_TSC) return clock_of_ticks(clock, __builtin_ia32_rdtsc());
#endif
    return clock->kind == CLOCK_FAKE ? *clock->fake : clock_plain_ns();
}

#endif
