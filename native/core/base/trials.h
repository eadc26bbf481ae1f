/* What something adds to the time of code, from trials with and without it that were made in turns.
 *
 * The shortest trials of both may be from moments in which the processor was not equally fast, which counts for as much as what is
 * looked for where the code itself takes long. So each trial is compared with the one beside it. Interruptions only lengthen a pair:
 * the quickest pairs count, and of these the middle one.
 *
 * Threads: any. Cost: a few passes over the trials. */
#ifndef PERFLAW_TRIALS_H
#define PERFLAW_TRIALS_H

#include <stdint.h>

enum { QUICKEST_PAIRS = 3 };

/* Time with it minus time without; both have `count` trials, at least QUICKEST_PAIRS. */
static inline int64_t trials_difference(const int64_t *without, const int64_t *with, int count) {
    int64_t added[QUICKEST_PAIRS];
    int64_t last_whole = INT64_MIN;
    int last = -1; /* the pair that was found last; pairs are in order of their time, then of their number */
    for (int rank = 0; rank < QUICKEST_PAIRS; rank++) {
        int best = -1;
        int64_t best_whole = INT64_MAX;
        for (int at = 0; at < count; at++) {
            int64_t whole = without[at] + with[at];
            int is_left = whole > last_whole || (whole == last_whole && at > last);
            if (is_left && whole < best_whole) {
                best = at;
                best_whole = whole;
            }
        }
        added[rank] = with[best] - without[best];
        last = best;
        last_whole = best_whole;
    }
    int64_t low = added[0] < added[1] ? added[0] : added[1], high = added[0] < added[1] ? added[1] : added[0];
    return added[2] < low ? low : added[2] > high ? high : added[2];
}

#endif
