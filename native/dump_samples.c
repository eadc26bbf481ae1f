#include <inttypes.h>
#include <stdlib.h>

#include "dump.h"
#include "reservoir.h"

typedef struct Kept {
    uint64_t sequence;
    Sample *sample;
    int uniform;
} Kept;

static int by_sequence(const void *a, const void *b) {
    const Kept *x = a, *y = b;
    if (x->sequence != y->sequence) return x->sequence < y->sequence ? -1 : 1;
    return y->uniform - x->uniform; /* the uniform one first: it stands for both */
}

/* Append what a bottom keeps. A ticket that a kill left stale no longer matches the sample it names. */
static Kept *collect(const Arena *arena, const Bottom *bottom, int uniform, Kept *to) {
    const Ticket *heap = arena_at(arena, bottom->heap);
    for (uint32_t at = 0; at < bottom->kept; at++) {
        Sample *sample = arena_at(arena, heap[at].sample);
        if (sample->sequence == heap[at].sequence) *to++ = (Kept){sample->sequence, sample, uniform};
    }
    return to;
}

static void print(const Arena *arena, uint32_t code, const Kept *kept, FILE *out) {
    Sample *sample = kept->sample;
    uint64_t sequence = sample->sequence, key = scramble(sequence ^ arena->head->tree.seed);
    fprintf(out, "sample %u %" PRIu64 " %d %" PRId64, code, sequence, sample->node, sample->started);
    fprintf(out, " %" PRId64 " %d %" PRIu64, sample->x, kept->uniform ? sample->key : -1, key);
    fprintf(out, " %u %u\n", sample->kids, sample->features);
    for (const Touch *kid = sample_kids(sample); kid < sample_kids(sample) + sample->kids; kid++)
        fprintf(out, "callee %" PRIu64 " %d %" PRIu64 " %" PRId64 "\n", sequence, kid->node, kid->calls, kid->cost);
    for (uint32_t at = 0; at < sample->features; at++) {
        const Feature *feature = &sample_features(sample)[at];
        fprintf(out, "feature %" PRIu64 " %" PRId64 " %" PRId64 "\n", sequence, feature->number, feature->bits);
    }
}

void dump_samples(const Arena *arena, uint32_t code, Offset place, FILE *out) {
    const Reservoir *reservoir = arena_at(arena, place);
    Kept *kept = malloc((UNIFORM + STRATA * PER_STRATUM) * sizeof(Kept)), *end = kept;
    if (!kept) return;
    end = collect(arena, &reservoir->uniform, 1, end);
    for (unsigned stratum = 0; stratum < STRATA; stratum++) {
        if (!reservoir->strata[stratum]) continue;
        const Bottom *bottom = arena_at(arena, reservoir->strata[stratum]);
        fprintf(out, "stratum %u %u %" PRIu64 "\n", code, stratum, bottom->offered);
        end = collect(arena, bottom, 0, end);
    }
    qsort(kept, (size_t)(end - kept), sizeof(Kept), by_sequence);
    for (Kept *at = kept; at < end; at++)
        if (at == kept || at->sequence != at[-1].sequence) print(arena, code, at, out);
    free(kept);
}
