#include "export.h"

#include "core/tree/lanes.h"
#include "core/tree/nodes.h"
#include "export_nodes.h"
#include "export_paths.h"
#include "export_samples.h"

static void export_head(const Tree *tree, uint32_t table, RowSink *sink) {
    (void)table;
    HeadRow row = {
        .lanes = tree->lane_count,
        .calls = (int64_t)tree->calls,
        .seen = tree->has_stamps,
        .first = tree->first_stamp,
        .last = tree->last_stamp,
        .folded = (int64_t)tree->folded,
        .links_left_out = (int64_t)tree->links_left_out,
        .pairs_left_out = (int64_t)tree->pairs_left_out,
        .lost = (int64_t)tree->lost,
        .full = tree->arena.full,
        .memory = (int64_t)tree->arena.used,
        .unread_rings = (int64_t)tree->unread_rings,
    };
    sink_put(sink, &row, sizeof row);
}

static void put_function_lanes(const Tree *tree, const Function *function, RowSink *sink) {
    for (uint64_t metric = 0; metric < tree->lane_count; metric++) {
        const FunctionLane *lane = lane_find(function->lanes, metric);
        Sum total = lane ? lane->total : 0, self = lane ? lane->self : 0;
        if (metric == METRIC_TIME || metric == METRIC_CPU) total += function->total_time, self += function->self_time;
        if (metric == METRIC_EVENTS) total = widen(function->total_events), self = widen(function->self_events);
        CodeLaneRow row;
        sink_split(row.total, total);
        sink_split(row.self, self);
        sink_put(sink, &row, sizeof row);
    }
}

/* Functions of which something has ended. Numbers without a function have no row. */
static void export_functions(const Tree *tree, uint32_t table, RowSink *sink) {
    for (uint32_t number = 0; number < tree->functions.count; number++) {
        const Function *function = function_at(tree, number);
        if (!function || !(function->closed || function->recorded)) continue;
        if (table == TABLE_CODE_LANES) put_function_lanes(tree, function, sink);
        else sink_put(sink, &(CodeRow){number, function->closed, function->recorded}, sizeof(CodeRow));
    }
}

static const struct {
    void (*write)(const Tree *tree, uint32_t table, RowSink *sink);
    size_t row;
} WRITERS[TABLES] = {
    [TABLE_HEAD] = {export_head, sizeof(HeadRow)},
    [TABLE_NODES] = {export_nodes, sizeof(NodeRow)},
    [TABLE_NODE_LANES] = {export_nodes, sizeof(NodeLaneRow)},
    [TABLE_PAIRS] = {export_pairs, sizeof(PairRow)},
    [TABLE_PAIR_LANES] = {export_pairs, sizeof(PairLaneRow)},
    [TABLE_LINKS] = {export_links, sizeof(LinkRow)},
    [TABLE_LINK_LANES] = {export_links, sizeof(LinkLaneRow)},
    [TABLE_HISTOGRAM] = {export_nodes, sizeof(HistogramRow)},
    [TABLE_WAITS] = {export_nodes, sizeof(WaitRow)},
    [TABLE_CODES] = {export_functions, sizeof(CodeRow)},
    [TABLE_CODE_LANES] = {export_functions, sizeof(CodeLaneRow)},
    [TABLE_SAMPLES] = {export_samples, sizeof(SampleRow)},
    [TABLE_COSTS] = {export_samples, sizeof(CostRow)},
    [TABLE_CALLEES] = {export_samples, sizeof(Callee)},
    [TABLE_FEATURES] = {export_samples, sizeof(Feature)},
    [TABLE_PARTS] = {export_samples, sizeof(Callee)},
    [TABLE_WORST] = {export_worst, sizeof(WorstRow)},
    [TABLE_SPANS] = {export_worst, sizeof(SpanRow)},
    [TABLE_PATH_CODES] = {export_paths, sizeof(PathCodeRow)},
    [TABLE_PATH_SEEN] = {export_paths, sizeof(SeenRow)},
    [TABLE_PATH_PIECES] = {export_paths, sizeof(PieceRow)},
    [TABLE_PATH_BUCKETS] = {export_paths, sizeof(BucketRow)},
    [TABLE_PATH_BATCHES] = {export_paths, sizeof(BatchRow)},
};

size_t export_table(const Tree *tree, uint32_t table, void *buffer, size_t size) {
    RowSink sink = {.to = buffer, .size = buffer ? size : 0};
    if (table < TABLES) WRITERS[table].write(tree, table, &sink);
    return sink.needed;
}

size_t export_row_size(uint32_t table) { return table < TABLES ? WRITERS[table].row : 0; }
