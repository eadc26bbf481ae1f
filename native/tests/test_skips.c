#include "runner.h"
#include "core/base/skips.h"

#include <stdlib.h>

enum { INVOCATIONS = 200000, ROUNDS = 20 };

static int ascending(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Places of the invocations with the smallest priorities, of a run of so many. */
static int64_t sample(uint64_t seed, int64_t *places, int64_t *candidates) {
    static int64_t drawn[INVOCATIONS][2];
    Skips skips = {0};
    int64_t count = 0;
    for (int64_t at = 0; at < INVOCATIONS; at += 1 + skips_next(&skips, &seed)) {
        drawn[count][0] = skips_draw(&skips, SKIPS_SAMPLE_SIZE, &seed);
        drawn[count++][1] = at;
    }
    qsort(drawn, (size_t)count, sizeof *drawn, ascending);
    for (int64_t at = 0; at < SKIPS_SAMPLE_SIZE && at < count; at++) places[at] = drawn[at][1];
    *candidates = count;
    return count < SKIPS_SAMPLE_SIZE ? count : SKIPS_SAMPLE_SIZE;
}

/* Every invocation is as likely as any other to be kept, early or late, and few are looked at. */
void test_skips(Tally *tally) {
    int64_t early = 0, kept = 0, most = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        int64_t places[SKIPS_SAMPLE_SIZE], candidates, count = sample(round * 7919, places, &candidates);
        for (int64_t at = 0; at < count; at++) early += places[at] < INVOCATIONS / 4;
        kept += count;
        if (candidates > most) most = candidates;
    }
    CHECK(tally, kept == ROUNDS * SKIPS_SAMPLE_SIZE);
    /* A quarter of 10,240, whose standard deviation is 44. */
    CHECK(tally, early > 2560 - 6 * 44 && early < 2560 + 6 * 44);
    CHECK(tally, most < 16 * SKIPS_SAMPLE_SIZE);
}

/* Samples become smaller where there are many functions, and a smaller one is as even. */
void test_smaller_skips(Tally *tally) {
    CHECK(tally, skips_sample_size(1) == SKIPS_SAMPLE_SIZE && skips_sample_size(320) == SKIPS_SAMPLE_SIZE);
    CHECK(tally, skips_sample_size(330) == SKIPS_SAMPLE_SIZE / 4 && skips_sample_size(645) == SKIPS_SAMPLE_SIZE / 8);
    CHECK(tally, skips_sample_size(1000000) == 16);
    enum { CALLS = 20000, SMALL = 128 };
    static int32_t keys[CALLS];
    int64_t candidates = 0, kept = 0;
    Skips skips = {0};
    uint64_t seed = 17;
    for (int64_t at = 0; at < CALLS; at += 1 + skips_next(&skips, &seed))
        keys[candidates++] = skips_draw(&skips, at < CALLS / 10 ? SKIPS_SAMPLE_SIZE : SMALL, &seed);
    /* All invocations below the last bound were candidates, early or late. */
    for (int64_t at = 0; at < candidates; at++) kept += keys[at] < 1 << (SKIPS_BITS - skips.halvings);
    CHECK(tally, kept >= SMALL && kept < 4 * SMALL);
}
