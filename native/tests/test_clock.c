#include "core/base/clock.h"
#include "runner.h"

static void a_fake_clock_shows_what_it_is_told(Tally *tally) {
    int64_t now = 7;
    Clock clock = clock_fake(&now);
    CHECK(tally, clock_ns(&clock) == 7);
    now = INT64_MAX;
    CHECK(tally, clock_ns(&clock) == INT64_MAX);
}

static void ticks_become_ns_without_overflow(Tally *tally) {
    Clock clock = {.kind = CLOCK_TSC, .base_ticks = 1000, .base_ns = 5, .multiplier = 1ull << 31}; /* 2 GHz */
    CHECK(tally, clock_of_ticks(&clock, 1000) == 5);
    CHECK(tally, clock_of_ticks(&clock, 3000) == 1005);
    CHECK(tally, clock_of_ticks(&clock, 998) == 4);
    int64_t century = 3155760000ll * 1000000000ll;
    CHECK(tally, clock_of_ticks(&clock, 1000 + 2 * (uint64_t)century) == century + 5);
}

/* The chosen clock lies between two readings of the plain one, but for a drift of 200 ppm and 2 us: no machine's speed
 * or load matters, for a pause between readings only widens the gap. */
static void the_chosen_clock_follows_the_plain_one(Tally *tally) {
    Clock clock;
    CHECK(tally, clock_start(&clock) != NULL);
    int64_t start = clock_plain_ns(), last = 0;
    int close = 1, forward = 1;
    for (int at = 0; at < 1000; at++) {
        int64_t before = clock_plain_ns(), now = clock_ns(&clock), after = clock_plain_ns();
        int64_t slack = 2000 + (after - start + 50000000) / 5000;
        close &= now >= before - slack && now <= after + slack;
        forward &= now >= last;
        last = now;
    }
    CHECK(tally, close);
    CHECK(tally, forward);
}

static void every_clock_has_a_step(Tally *tally) {
    int64_t now = 0;
    Clock clock = clock_fake(&now), plain = {.kind = CLOCK_PLAIN};
    CHECK(tally, clock_step_ns(&clock) == 1);
    CHECK(tally, clock_step_ns(&plain) >= 1 && clock_step_ns(&plain) < 1e6);
    clock_start(&clock);
    CHECK(tally, clock_step_ns(&clock) >= 1 && clock_step_ns(&clock) < 1e6);
}

void test_clock(Tally *tally) {
    a_fake_clock_shows_what_it_is_told(tally);
    ticks_become_ns_without_overflow(tally);
    the_chosen_clock_follows_the_plain_one(tally);
    every_clock_has_a_step(tally);
}
