/* Rows of the worst invocations of each function, in order of completion, and of the spans within them, callers first. */
#include <stdlib.h>

#include "export.h"
#include "grid.h"
#include "spans.h"

static int by_sequence(const void *a, const void *b) {
    const Worst *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : 1;
}

static void put(uint32_t table, const Code *code, const Worst *one, Sink *sink) {
    WorstRow row = {code->number, (int64_t)one->sequence, one->node, one->started, one->time, one->cpu, one->events, one->count};
    if (table == TABLE_WORST) sink_put(sink, &row, sizeof row);
    for (uint32_t at = 0; table == TABLE_SPANS && at < one->count; at++) {
        const Span *span = &one->spans[at];
        sink_put(sink, &(SpanRow){span->node, span->depth, span->started, span->time}, sizeof(SpanRow));
    }
}

void export_worst(const Tree *tree, uint32_t table, Sink *sink) {
    for (uint32_t number = 0; number < tree->codes.count; number++) {
        const Code *code = *(Code **)grid_at(&tree->codes, number);
        if (!code || !code->worst) continue;
        Worsts ordered = *code->worst;
        qsort(ordered.of, ordered.count, sizeof(Worst), by_sequence);
        for (uint32_t at = 0; at < ordered.count; at++) put(table, code, &ordered.of[at], sink);
    }
}
