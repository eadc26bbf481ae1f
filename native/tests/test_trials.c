#include "core/base/trials.h"
#include "runner.h"

enum { TRIALS = 12, WITHOUT = 200000, ADDED = 10000, INTERRUPTED = 3000000 };

static void the_processor_may_be_quicker_during_one_trial(Tally *tally) {
    int64_t without[TRIALS], with[TRIALS];
    for (int at = 0; at < TRIALS; at++) {
        without[at] = WITHOUT;
        with[at] = WITHOUT + ADDED;
    }
    without[4] = WITHOUT * 2 / 3; /* the shortest trials would say that eight times as much is added */
    CHECK(tally, trials_difference(without, with, TRIALS) == ADDED);
    with[7] = (WITHOUT + ADDED) * 2 / 3; /* and here that it takes less */
    CHECK(tally, trials_difference(without, with, TRIALS) == ADDED);
}

static void most_trials_may_be_interrupted(Tally *tally) {
    int64_t without[TRIALS], with[TRIALS];
    for (int at = 0; at < TRIALS; at++) {
        without[at] = WITHOUT + at + (at % 2 && at > 3 ? INTERRUPTED : 0);
        with[at] = WITHOUT + ADDED + at + (at % 2 == 0 && at > 3 ? INTERRUPTED : 0);
    }
    CHECK(tally, trials_difference(without, with, TRIALS) == ADDED);
}

static void pairs_may_take_equally_long(Tally *tally) {
    int64_t without[] = {5, 4, 3}, with[] = {5, 6, 7};
    CHECK(tally, trials_difference(without, with, 3) == 2);
}

void test_trials(Tally *tally) {
    the_processor_may_be_quicker_during_one_trial(tally);
    most_trials_may_be_interrupted(tally);
    pairs_may_take_equally_long(tally);
}
