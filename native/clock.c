#include "clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CALIBRATION_NS = 5000000, TRIES = 16 };

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
