#include "sampler.h"

/* All reading takes about a tenth of the time: beyond that, functions that were read often keep smaller samples. Reading
 * beyond the samples takes at most a fiftieth of the time; but a function that takes less than a two-thousandth of it by
 * reading is read even so, because those that are called seldom need it most. */
enum { BUDGET_SHARE = 10, SHARE = 50, ALWAYS_SHARE = 2000, MAX_GAP = 4096 };
enum { LEAST_SAMPLE = 32, FREE_NS = 1000000 }; /* FREE_NS: what reading may take in any program */

static int is_over_budget(const ReadingTime *time) { return (time->reading_ns - FREE_NS) * BUDGET_SHARE > time->passed_ns; }

/* Whether reading the features of a call that is not sampled stays within its share of the time. What was read because
 * it is sampled counts as well, for a program is not to be slowed down by both. */
static int is_cheap(Sampler *sampler, const ReadingTime *time) {
    int cheap = time->reading_ns * SHARE <= time->passed_ns ||
                (sampler->reading_ns * ALWAYS_SHARE <= time->passed_ns && !is_over_budget(time));
    cheap &= !time->is_fake && !sampler->is_futile;
    sampler->gap = cheap ? 0 : sampler->gap < MAX_GAP ? sampler->gap * 2 + 1 : MAX_GAP;
    return cheap;
}

/* The priority of a candidate. If reading takes too long, the function's sample becomes half as large. The reservoir does
 * not know that, so the bound of the priorities is given: those above it would all be of early calls. */
static void draw(Sampler *sampler, const ReadingTime *time, uint32_t size, uint64_t *random_state, SamplerChoice *choice) {
    Skips *skips = &sampler->skips;
    uint32_t cut = size >> sampler->sample_cuts, before = skips->halvings;
    int is_least = cut <= LEAST_SAMPLE;
    choice->key = skips_draw(skips, is_least && sampler->sample_cuts ? LEAST_SAMPLE : cut, random_state);
    int is_halved = skips->halvings != before;
    choice->is_bounded = is_halved && sampler->sample_cuts;
    choice->bits = SKIPS_BITS - skips->halvings;
    if (!is_halved && !is_least && is_over_budget(time)) sampler->sample_cuts++;
}

SamplerChoice sampler_choose(Sampler *sampler, const ReadingTime *time, uint32_t size, uint64_t *random_state) {
    SamplerChoice choice = {.key = -1};
    sampler->until_key -= sampler->span;
    if (sampler->until_key <= 0) {
        draw(sampler, time, size, random_state, &choice);
        sampler->until_key = skips_next(&sampler->skips, random_state);
    } else {
        sampler->until_key--;
    }
    choice.is_read = is_cheap(sampler, time) || choice.key >= 0;
    sampler->span = sampler->until_key < sampler->gap ? sampler->until_key : sampler->gap;
    return choice;
}
