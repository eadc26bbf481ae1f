#include "clock.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CALIBRATION_NS = 5000000, TRIES = 16 };
/* A step below eight units of a clock is none: multiples of it, give or take the rounding, are nearly all numbers. */
enum { READINGS = 2000, LOOKED_AT = 1800, ROUNDING = 2, COARSE = 8, FEW_STEPS = 3 }; /* the longest are interruptions */

int64_t clock_plain_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

Clock clock_fake(const int64_t *now) { return (Clock){.kind = CLOCK_FAKE, .fake = now}; }

#if defined(__x86_64__)
static int invariant(void) {
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
}

/* Both clocks at one moment: of several tries, the one during which the least time passed. */
static void both(uint64_t *ticks, int64_t *ns) {
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = __rdtsc();
        int64_t middle = clock_plain_ns();
        uint64_t width = __rdtsc() - before;
        if (width >= narrowest) continue;
        narrowest = width;
        *ticks = before + width / 2;
        *ns = middle;
    }
}

static int calibrate(Clock *clock) {
    uint64_t ticks;
    int64_t ns;
    both(&clock->base_ticks, &clock->base_ns);
    struct timespec pause = {.tv_nsec = CALIBRATION_NS};
    nanosleep(&pause, NULL); /* a signal may shorten it: the quotient is then coarser, never wrong */
    both(&ticks, &ns);
    if (ticks <= clock->base_ticks || ns <= clock->base_ns) return 0;
    unsigned __int128 passed = (unsigned __int128)(uint64_t)(ns - clock->base_ns) << 32;
    clock->multiplier = (uint64_t)(passed / (ticks - clock->base_ticks));
    return 1;
}
#endif

/* ---- the step ---- */

static uint64_t reading(const Clock *clock) {
#if defined(__x86_64__)
    if (clock->kind == CLOCK_TSC) return __rdtsc();
#endif
    return (uint64_t)clock_ns(clock);
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Differences of readings with pauses of many lengths between them, increasing. */
static void differences(const Clock *clock, uint64_t *passed) {
    for (int at = 0; at < READINGS; at++) {
        uint64_t before = reading(clock);
        for (volatile int pause = at % 61; pause > 0; pause--) continue;
        passed[at] = reading(clock) - before;
    }
    qsort(passed, READINGS, sizeof *passed, by_size);
}

/* The least distance between neighbours among the differences that are not equal but for rounding. */
static uint64_t least_gap(const uint64_t *passed) {
    uint64_t least = UINT64_MAX;
    for (int at = 1; at < LOOKED_AT; at++) {
        uint64_t gap = passed[at] - passed[at - 1];
        if (gap > ROUNDING && gap < least) least = gap;
    }
    return least;
}

/* The step that the differences up to a bound are multiples of but for rounding, near a guess of it; 0 where they are not. */
static double step_near(const uint64_t *passed, double step, double most) {
    int count = 0, right = 0;
    double products = 0, squares = 0;
    for (int at = 0; at < LOOKED_AT && step > 0 && (double)passed[at] <= most; at++, count++) {
        double times = (double)(int64_t)((double)passed[at] / step + 0.5), off = (double)passed[at] - times * step;
        right += off <= ROUNDING && off >= -ROUNDING;
        products += times * (double)passed[at];
        squares += times * times;
    }
    return right > count * 19 / 20 && squares > 0 ? products / squares : 0;
}

/* Differences to the one in the middle: multiples all the same, and small ones. */
static void centre(const uint64_t *passed, uint64_t *apart) {
    uint64_t middle = passed[LOOKED_AT / 2];
    for (int at = 0; at < LOOKED_AT; at++) apart[at] = passed[at] > middle ? passed[at] - middle : middle - passed[at];
    qsort(apart, LOOKED_AT, sizeof *apart, by_size);
}

double clock_tick(const Clock *clock) {
    uint64_t passed[READINGS], apart[LOOKED_AT];
    if (clock->kind == CLOCK_FAKE) return 1;
    differences(clock, passed);
    centre(passed, apart);
    double step = 0, guess = (double)least_gap(apart);
    for (int off = -ROUNDING; off <= ROUNDING && step < COARSE; off++) {
        double near = step_near(apart, guess + off, FEW_STEPS * guess); /* few steps bear that a guess is off by the rounding */
        step = step_near(apart, near, 1e18);
    }
    double exact = step_near(passed, step, 1e18); /* of many steps: better, where there are not too many */
    if (exact > 0) step = exact;
    if (step < COARSE) return 1;
    return clock->kind == CLOCK_TSC ? step * (double)clock->multiplier / 4294967296.0 : step;
}

const char *clock_start(Clock *clock) {
    *clock = (Clock){.kind = CLOCK_PLAIN};
#if defined(__x86_64__)
    if (!invariant()) return "CLOCK_MONOTONIC: this processor's TSC does not run at a constant rate";
    if (!calibrate(clock)) return "CLOCK_MONOTONIC: the TSC stood still during calibration";
    clock->kind = CLOCK_TSC;
    return "TSC: constant rate, calibrated to CLOCK_MONOTONIC";
#else
    return "CLOCK_MONOTONIC: no TSC on this architecture";
#endif
}
