/* Which invocations of a function are candidates for the uniform sample (skips.h), and which of them have their features
 * read.
 *
 * Ownership: the caller's; a zeroed Sampler is new. Threads: one at a time. Cost: a look at a candidate takes some 50 ns, at
 * another call 5 ns; how many ordinary calls come before the next look, it says itself. */
#ifndef PERFLAW_SAMPLER_H
#define PERFLAW_SAMPLER_H

#include "skips.h"

typedef struct Sampler {
    Skips skips;
    int64_t span;         /* ordinary calls between the last look and the next one */
    int64_t until_key;    /* ordinary calls left until the next candidate for the sample, as of the last look */
    int64_t gap;          /* calls to wait until the cost of reading features is looked at again */
    int64_t reading_ns;   /* time spent on reading features of this function so far */
    uint32_t sample_cuts; /* how often its sample was halved because reading took too long */
    int is_futile;        /* there was nothing to read at the last reading */
    int64_t observation;  /* the last observation in which a call was read because it was the first one */
} Sampler;

/* The time that readings are compared with, of a program or thread. */
typedef struct ReadingTime {
    int64_t passed_ns, reading_ns; /* since its recording began; spent on reading features meanwhile */
    int is_fake;                   /* the clock does not tell what reading costs */
} ReadingTime;

typedef struct SamplerChoice {
    int32_t key;    /* the call's priority; -1: it is no candidate */
    int is_read;    /* whether its features are to be read */
    int is_bounded; /* the sample became smaller than the reservoir knows: priorities have at most `bits` bits from now on */
    uint32_t bits;
} SamplerChoice;

/* All reading takes about a tenth of the time: beyond that, functions that were read often keep smaller samples. Reading
 * beyond the samples takes at most a fiftieth of the time; but a function that takes less than a two-thousandth of it by
 * reading is read even so, because those that are called seldom need it most. */
enum { SAMPLER_BUDGET_SHARE = 10, SAMPLER_SHARE = 50, SAMPLER_ALWAYS_SHARE = 2000, SAMPLER_MAX_GAP = 4096 };
enum { SAMPLER_FREE_NS = 1000000 }; /* what reading may take in any program */

static inline int sampler_is_over_budget(const ReadingTime *time) {
    return (time->reading_ns - SAMPLER_FREE_NS) * SAMPLER_BUDGET_SHARE > time->passed_ns;
}

/* Whether reading the features of a call that is not sampled stays within its share of the time. What was read because
 * it is sampled counts as well, for a program is not to be slowed down by both. The next look is about when reading will
 * be cheap again, as far as the calls so far tell. */
static inline int sampler_is_cheap(Sampler *sampler, const ReadingTime *time) {
    int cheap = time->reading_ns * SAMPLER_SHARE <= time->passed_ns ||
                (sampler->reading_ns * SAMPLER_ALWAYS_SHARE <= time->passed_ns && !sampler_is_over_budget(time));
    cheap &= !time->is_fake && !sampler->is_futile;
    sampler->gap = cheap ? sampler->gap / 4 : sampler->gap < SAMPLER_MAX_GAP ? sampler->gap * 2 + 1 : SAMPLER_MAX_GAP;
    return cheap;
}

/* Whether the call, `span` ordinary calls after the last look, is a candidate for the sample. */
static inline int sampler_is_candidate(const Sampler *sampler) { return sampler->until_key <= sampler->span; }

/* Look at a call that is no candidate. Gives whether its features are to be read. Computes with whole numbers alone. */
static inline int sampler_pass(Sampler *sampler, const ReadingTime *time) {
    sampler->until_key -= sampler->span + 1;
    int is_read = sampler_is_cheap(sampler, time);
    sampler->span = sampler->until_key < sampler->gap ? sampler->until_key : sampler->gap;
    return is_read;
}

/* Look at a call closely, `span` ordinary calls after the last look. size: of a sample that was not cut. */
SamplerChoice sampler_choose(Sampler *sampler, const ReadingTime *time, uint32_t size, uint64_t *random_state);

#endif
