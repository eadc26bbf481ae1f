/* Rows of the samples, each once, in order of completion. */
#include <stdlib.h>

#include "export.h"
#include "grid.h"
#include "lanes.h"
#include "reservoir.h"

enum { MOST = UNIFORM + STRATA * PER_STRATUM };

typedef struct Kept {
    const Sample *sample;
    int uniform;
} Kept;

static int by_sequence(const void *a, const void *b) {
    const Kept *x = a, *y = b;
    if (x->sample->sequence != y->sample->sequence) return x->sample->sequence < y->sample->sequence ? -1 : 1;
    return y->uniform - x->uniform; /* the uniform one first: it stands for both */
}

static void put_costs(const Tree *tree, const Sample *sample, Sink *sink) {
    int64_t costs[MAX_LANES] = {sample->time, sample->time, sample->events};
    for (uint32_t at = 0; at < sample->costs; at++) {
        Cost cost = sample_costs(sample)[at];
        costs[cost.metric] = cost.metric == METRIC_CPU ? since(sample->time, cost.value) : cost.value;
    }
    sink_put(sink, costs, tree->lanes * sizeof(CostRow));
}

static void put(const Tree *tree, uint32_t table, const Code *code, Kept kept, Sink *sink) {
    const Sample *sample = kept.sample;
    int64_t sequence = (int64_t)sample->sequence, key = kept.uniform ? sample->key : -1;
    SampleRow row = {code->number, sequence, sample->node, sample->started,
                     key, (int64_t)scramble(sample->sequence ^ tree->seed), sample->callees, sample->features};
    if (table == TABLE_SAMPLES) sink_put(sink, &row, sizeof row);
    else if (table == TABLE_COSTS) put_costs(tree, sample, sink);
    else if (table == TABLE_CALLEES) sink_put(sink, sample_callees(sample), sample->callees * sizeof(Callee));
    else sink_put(sink, sample_features(sample), sample->features * sizeof(Feature));
}

static Kept *collect(const Bottom *bottom, int uniform, Kept *to) {
    for (uint32_t at = 0; bottom && at < bottom->kept; at++) *to++ = (Kept){bottom->heap[at].sample, uniform};
    return to;
}

static void of_code(const Tree *tree, uint32_t table, const Code *code, Kept *kept, Sink *sink) {
    Kept *end = kept;
    for (unsigned at = 0; at <= STRATA; at++) end = collect(code->reservoir[at], !at, end);
    qsort(kept, (size_t)(end - kept), sizeof(Kept), by_sequence);
    for (Kept *at = kept; at < end; at++)
        if (at == kept || at->sample != at[-1].sample) put(tree, table, code, *at, sink);
}

void export_samples(const Tree *tree, uint32_t table, Sink *sink) {
    Kept *kept = malloc(MOST * sizeof(Kept));
    for (uint32_t number = 0; kept && number < tree->codes.count; number++) {
        const Code *code = *(Code **)grid_at(&tree->codes, number);
        if (code && code->reservoir) of_code(tree, table, code, kept, sink);
    }
    free(kept);
}
