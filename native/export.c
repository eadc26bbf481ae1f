#include "export.h"

#include <string.h>

#include "grid.h"
#include "lanes.h"

void sink_put(Sink *sink, const void *row, size_t size) {
    if (size && sink->needed + size <= sink->size) memcpy(sink->to + sink->needed, row, size);
    sink->needed += size;
}

void sink_sum(int64_t *words, Sum sum) {
    words[0] = (int64_t)(uint64_t)sum;
    words[1] = (int64_t)(uint64_t)(sum >> 64);
}

static void head(const Tree *tree, uint32_t table, Sink *sink) {
    (void)table;
    HeadRow row = {
        .lanes = tree->lanes,
        .calls = (int64_t)tree->calls,
        .seen = tree->seen,
        .first = tree->first,
        .last = tree->last,
        .folded = (int64_t)tree->folded,
        .links_left_out = (int64_t)tree->links_left_out,
        .pairs_left_out = (int64_t)tree->pairs_left_out,
        .lost = (int64_t)tree->lost,
        .full = tree->arena.full,
        .memory = (int64_t)tree->arena.used,
    };
    sink_put(sink, &row, sizeof row);
}

static void code_lanes(const Tree *tree, const Code *code, Sink *sink) {
    for (uint64_t metric = 0; metric < tree->lanes; metric++) {
        const CodeLane *lane = lane_find(code->lanes, metric);
        Sum total = lane ? lane->total : 0, self = lane ? lane->self : 0;
        if (metric == METRIC_TIME || metric == METRIC_CPU) total += code->total_time, self += code->self_time;
        if (metric == METRIC_EVENTS) total = widened(code->total_events), self = widened(code->self_events);
        CodeLaneRow row;
        sink_sum(row.total, total);
        sink_sum(row.self, self);
        sink_put(sink, &row, sizeof row);
    }
}

/* Functions of which something has ended; numbers without a function have no row. */
static void codes(const Tree *tree, uint32_t table, Sink *sink) {
    for (uint32_t number = 0; number < tree->codes.count; number++) {
        const Code *code = *(Code **)grid_at(&tree->codes, number);
        if (!code || !(code->closed || code->recorded)) continue;
        if (table == TABLE_CODE_LANES) code_lanes(tree, code, sink);
        else sink_put(sink, &(CodeRow){number, code->closed, code->recorded}, sizeof(CodeRow));
    }
}

static const struct {
    void (*write)(const Tree *tree, uint32_t table, Sink *sink);
    size_t row;
} WRITERS[TABLES] = {
    [TABLE_HEAD] = {head, sizeof(HeadRow)},
    [TABLE_NODES] = {export_nodes, sizeof(NodeRow)},
    [TABLE_NODE_LANES] = {export_nodes, sizeof(NodeLaneRow)},
    [TABLE_PAIRS] = {export_pairs, sizeof(PairRow)},
    [TABLE_PAIR_LANES] = {export_pairs, sizeof(PairLaneRow)},
    [TABLE_LINKS] = {export_links, sizeof(LinkRow)},
    [TABLE_LINK_LANES] = {export_links, sizeof(LinkLaneRow)},
    [TABLE_HISTOGRAM] = {export_nodes, sizeof(HistogramRow)},
    [TABLE_WAITS] = {export_nodes, sizeof(WaitRow)},
    [TABLE_CODES] = {codes, sizeof(CodeRow)},
    [TABLE_CODE_LANES] = {codes, sizeof(CodeLaneRow)},
    [TABLE_SAMPLES] = {export_samples, sizeof(SampleRow)},
    [TABLE_COSTS] = {export_samples, sizeof(CostRow)},
    [TABLE_CALLEES] = {export_samples, sizeof(Callee)},
    [TABLE_FEATURES] = {export_samples, sizeof(Feature)},
    [TABLE_WORST] = {export_worst, sizeof(WorstRow)},
    [TABLE_SPANS] = {export_worst, sizeof(SpanRow)},
    [TABLE_PATH_CODES] = {export_paths, sizeof(PathCodeRow)},
    [TABLE_PATH_SEEN] = {export_paths, sizeof(SeenRow)},
    [TABLE_PATH_PIECES] = {export_paths, sizeof(PieceRow)},
    [TABLE_PATH_BUCKETS] = {export_paths, sizeof(BucketRow)},
    [TABLE_PATH_BATCHES] = {export_paths, sizeof(BatchRow)},
};

size_t export_table(const Tree *tree, uint32_t table, void *buffer, size_t size) {
    Sink sink = {.to = buffer, .size = buffer ? size : 0};
    if (table < TABLES) WRITERS[table].write(tree, table, &sink);
    return sink.needed;
}

size_t export_row_size(uint32_t table) { return table < TABLES ? WRITERS[table].row : 0; }
