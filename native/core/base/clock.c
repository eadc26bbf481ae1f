#include "clock.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CALIBRATION_NS = 5000000, TRIES = 16 };
/* Of so many differences the shortest USED are looked at, because the longest are interruptions. A step below
 * MIN_STEP units of a clock is none: its multiples, give or take the rounding, are nearly all numbers. */
enum { READINGS = 2000, USED = 1800, ROUNDING = 2, MIN_STEP = 8, FEW_STEPS = 3 };

int64_t clock_plain_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

Clock clock_fake(const int64_t *now) { return (Clock){.kind = CLOCK_FAKE, .fake = now}; }

#if defined(__x86_64__)
/* Whether the TSC runs at a constant rate. */
static int is_invariant(void) {
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
}

/* Read both clocks at one moment: of several tries, the one during which the least time passed. */
static void read_both(uint64_t *ticks, int64_t *ns) {
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = __builtin_ia32_rdtsc();
        int64_t middle = clock_plain_ns();
        uint64_t width = __builtin_ia32_rdtsc() - before;
        if (width >= narrowest) continue;
        narrowest = width;
        *ticks = before + width / 2;
        *ns = middle;
    }
}

static int calibrate(Clock *clock) {
    uint64_t ticks;
    int64_t ns;
    read_both(&clock->base_ticks, &clock->base_ns);
    struct timespec pause = {.tv_nsec = CALIBRATION_NS};
    nanosleep(&pause, NULL); /* a signal may shorten this, which makes the quotient coarser and never wrong */
    read_both(&ticks, &ns);
    if (ticks <= clock->base_ticks || ns <= clock->base_ns) return 0;
    unsigned __int128 passed = (unsigned __int128)(uint64_t)(ns - clock->base_ns) << 32;
    clock->multiplier = (uint64_t)(passed / (ticks - clock->base_ticks));
    return 1;
}
#endif

/* ---- the step ---- */

static uint64_t reading(const Clock *clock) {
#if defined(__x86_64__)
    if (clock->kind == CLOCK_TSC) return __builtin_ia32_rdtsc();
#endif
    return (uint64_t)clock_ns(clock);
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Measure differences of readings with pauses of many lengths between them, and sort them. */
static void find_differences(const Clock *clock, uint64_t *passed) {
    for (int at = 0; at < READINGS; at++) {
        uint64_t before = reading(clock);
        for (volatile int pause = at % 61; pause > 0; pause--) continue;
        passed[at] = reading(clock) - before;
    }
    qsort(passed, READINGS, sizeof *passed, by_size);
}

/* The smallest distance between neighbouring differences that differ by more than the rounding. */
static uint64_t smallest_gap(const uint64_t *passed) {
    uint64_t least = UINT64_MAX;
    for (int at = 1; at < USED; at++) {
        uint64_t gap = passed[at] - passed[at - 1];
        if (gap > ROUNDING && gap < least) least = gap;
    }
    return least;
}

/* The step near a guess whose multiples, give or take the rounding, are the differences up to a bound; 0 if there is
 * none. */
static double fit_step(const uint64_t *passed, double step, double bound) {
    int count = 0, right = 0;
    double products = 0, squares = 0;
    for (int at = 0; at < USED && step > 0 && (double)passed[at] <= bound; at++, count++) {
        double times = (double)(int64_t)((double)passed[at] / step + 0.5), off = (double)passed[at] - times * step;
        right += off <= ROUNDING && off >= -ROUNDING;
        products += times * (double)passed[at];
        squares += times * times;
    }
    return right > count * 19 / 20 && squares > 0 ? products / squares : 0;
}

/* Take the distances of the differences from the median: they are multiples all the same, and small ones. */
static void centre(const uint64_t *passed, uint64_t *apart) {
    uint64_t middle = passed[USED / 2];
    for (int at = 0; at < USED; at++) apart[at] = passed[at] > middle ? passed[at] - middle : middle - passed[at];
    qsort(apart, USED, sizeof *apart, by_size);
}

double clock_step_ns(const Clock *clock) {
    uint64_t passed[READINGS], apart[USED];
    if (clock->kind == CLOCK_FAKE) return 1;
    find_differences(clock, passed);
    centre(passed, apart);
    double step = 0, guess = (double)smallest_gap(apart);
    for (int off = -ROUNDING; off <= ROUNDING && step < MIN_STEP; off++) {
        /* few steps tolerate a guess that is off by the rounding */
        double near = fit_step(apart, guess + off, FEW_STEPS * guess);
        step = fit_step(apart, near, 1e18);
    }
    double exact = fit_step(passed, step, 1e18); /* many steps fit better, unless they are too many */
    if (exact > 0) step = exact;
    if (step < MIN_STEP) return 1;
    return clock->kind == CLOCK_TSC ? step * (double)clock->multiplier / 4294967296.0 : step;
}

const char *clock_start(Clock *clock) {
    *clock = (Clock){.kind = CLOCK_PLAIN};
#if defined(__x86_64__)
    if (!is_invariant()) return "CLOCK_MONOTONIC: this processor's TSC does not run at a constant rate";
    if (!calibrate(clock)) return "CLOCK_MONOTONIC: the TSC stood still during calibration";
    clock->kind = CLOCK_TSC;
    return "TSC: constant rate, calibrated to CLOCK_MONOTONIC";
#else
    return "CLOCK_MONOTONIC: no TSC on this architecture";
#endif
}
