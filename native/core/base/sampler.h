/* Which invocations of a function are candidates for the uniform sample (skips.h), and which of them have their features
 * read.
 *
 * Ownership: the caller's; a zeroed Sampler is new. Threads: one at a time. Cost: a look at a call takes some 30 ns; how
 * many ordinary calls come before the next look, it says itself. */
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

/* Look at a call closely, `span` ordinary calls after the last look. size: of a sample that was not cut. */
SamplerChoice sampler_choose(Sampler *sampler, const ReadingTime *time, uint32_t size, uint64_t *random_state);

#endif
