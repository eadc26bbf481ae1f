#include "sampler.h"

enum { LEAST_SAMPLE = 32 };

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
    if (!is_halved && !is_least && sampler_is_over_budget(time)) sampler->sample_cuts++;
}

SamplerChoice sampler_choose(Sampler *sampler, const ReadingTime *time, uint32_t size, uint64_t *random_state) {
    SamplerChoice choice = {.key = -1};
    if (!sampler_is_candidate(sampler)) {
        choice.is_read = sampler_pass(sampler, time);
        return choice;
    }
    draw(sampler, time, size, random_state, &choice);
    sampler->until_key = skips_next(&sampler->skips, random_state);
    choice.is_read = sampler_is_cheap(sampler, time) || choice.key >= 0;
    sampler->span = sampler->until_key < sampler->gap ? sampler->until_key : sampler->gap;
    return choice;
}
