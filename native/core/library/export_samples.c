#include "export_samples.h"

#include <stdlib.h>

#include "core/tree/nodes.h"
#include "core/tree/reservoir.h"
#include "core/tree/spans.h"

/* ---- samples ---- */

enum { MAX_SAMPLES = UNIFORM_SIZE + STRATA * STRATUM_SIZE };

typedef struct KeptSample {
    const Sample *sample;
    int is_uniform; /* it is kept in the uniform sample, not in a stratum */
} KeptSample;

static int by_sequence(const void *a, const void *b) {
    const KeptSample *x = a, *y = b;
    if (x->sample->sequence != y->sample->sequence) return x->sample->sequence < y->sample->sequence ? -1 : 1;
    return y->is_uniform - x->is_uniform; /* the uniform one first: it stands for both */
}

static void put_costs(const Tree *tree, const Sample *sample, RowSink *sink) {
    int64_t costs[MAX_LANES] = {sample->time, sample->time, sample->events};
    for (uint32_t at = 0; at < sample->costs; at++) {
        Cost cost = sample_costs(sample)[at];
        costs[cost.metric] = cost.metric == METRIC_CPU ? minus(sample->time, cost.value) : cost.value;
    }
    sink_put(sink, costs, tree->lane_count * sizeof(CostRow));
}

static void put_sample(const Tree *tree, uint32_t table, const Function *function, KeptSample kept, RowSink *sink) {
    const Sample *sample = kept.sample;
    int64_t sequence = (int64_t)sample->sequence, key = kept.is_uniform ? sample->key : -1;
    SampleRow row = {function->number, sequence, sample->node, sample->started,
                     key, (int64_t)scramble(sample->sequence ^ tree->seed), sample->waited, sample->resumes, sample->callees,
                     sample->features, kept.is_uniform ? sample->parts : 0};
    if (table == TABLE_SAMPLES) sink_put(sink, &row, sizeof row);
    else if (table == TABLE_COSTS) put_costs(tree, sample, sink);
    else if (table == TABLE_CALLEES) sink_put(sink, sample_callees(sample), sample->callees * sizeof(Callee));
    else if (table == TABLE_PARTS) sink_put(sink, sample_parts(sample), row.parts * sizeof(Callee));
    else sink_put(sink, sample_features(sample), sample->features * sizeof(Feature));
}

static KeptSample *collect(const BottomK *bottom, int is_uniform, KeptSample *to) {
    for (uint32_t at = 0; bottom && at < bottom->count; at++) *to++ = (KeptSample){bottom->heap[at].sample, is_uniform};
    return to;
}

static void put_samples(const Tree *tree, uint32_t table, const Function *function, KeptSample *kept, RowSink *sink) {
    KeptSample *end = kept;
    for (unsigned at = 0; at <= STRATA; at++) end = collect(function->reservoir[at], !at, end);
    qsort(kept, (size_t)(end - kept), sizeof(KeptSample), by_sequence);
    for (KeptSample *at = kept; at < end; at++)
        if (at == kept || at->sample != at[-1].sample) put_sample(tree, table, function, *at, sink);
}

void export_samples(const Tree *tree, uint32_t table, RowSink *sink) {
    KeptSample *kept = malloc(MAX_SAMPLES * sizeof(KeptSample));
    for (uint32_t number = 0; kept && number < tree->functions.count; number++) {
        const Function *function = function_at(tree, number);
        if (function && function->reservoir) put_samples(tree, table, function, kept, sink);
    }
    free(kept);
}

/* ---- worst invocations ---- */

static int by_completion(const void *a, const void *b) {
    const WorstInvocation *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : 1;
}

static void put_worst(uint32_t table, const Function *function, const WorstInvocation *worst, RowSink *sink) {
    WorstRow row = {function->number, (int64_t)worst->sequence, worst->node, worst->started,
                    worst->time, worst->cpu, worst->events, worst->count};
    if (table == TABLE_WORST) sink_put(sink, &row, sizeof row);
    for (uint32_t at = 0; table == TABLE_SPANS && at < worst->count; at++) {
        const Span *span = &worst->spans[at];
        sink_put(sink, &(SpanRow){span->node, span->depth, span->started, span->time}, sizeof(SpanRow));
    }
}

void export_worst(const Tree *tree, uint32_t table, RowSink *sink) {
    for (uint32_t number = 0; number < tree->functions.count; number++) {
        const Function *function = function_at(tree, number);
        if (!function || !function->worst) continue;
        WorstList ordered = *function->worst;
        qsort(ordered.items, ordered.count, sizeof(WorstInvocation), by_completion);
        for (uint32_t at = 0; at < ordered.count; at++) put_worst(table, function, &ordered.items[at], sink);
    }
}
