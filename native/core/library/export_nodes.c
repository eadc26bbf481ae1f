/* A lane without a cell somewhere is 0 there; METRIC_CPU is then what the time is. */
#include "export_nodes.h"

#include "core/tree/lanes.h"
#include "core/tree/nodes.h"
#include "core/tree/repeats.h"

/* ---- nodes ---- */

static Extremes join(Extremes a, Extremes b) {
    return (Extremes){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
}

/* Extremes over all n invocations: of those with a cell, and of the rest. */
static Extremes extremes_of(const Node *node, const NodeLane *lane, Extremes cell, Extremes rest) {
    if (!lane) return rest;
    return lane->n == node->n ? cell : join(cell, rest);
}

static void put_node_lane(RowSink *sink, Sum x, Sum xx, Extremes extremes) {
    NodeLaneRow row = {.min_x = extremes.least, .max_x = extremes.most};
    sink_split(row.sum_x, x);
    sink_split(row.sum_xx, xx);
    sink_put(sink, &row, sizeof row);
}

static void put_lane(const Node *node, uint64_t metric, RowSink *sink) {
    const NodeLane *lane = lane_find(node->lanes, metric == METRIC_TIME ? METRIC_CPU : metric);
    const NodeLane none = {0}, *cell = lane ? lane : &none;
    Extremes plain = metric < METRIC_MORE ? node->time : (Extremes){0};
    Extremes extremes = extremes_of(node, lane, metric == METRIC_TIME ? cell->time : cell->cost, plain);
    if (metric == METRIC_TIME) put_node_lane(sink, node->time_x, node->time_xx, extremes);
    else if (metric == METRIC_CPU) put_node_lane(sink, node->time_x + cell->x, node->time_xx + cell->xx, extremes);
    else if (metric == METRIC_EVENTS) put_node_lane(sink, node->events_x, node->events_xx, node->events);
    else put_node_lane(sink, cell->x, cell->xx, extremes);
}

static void put_node(const Node *node, RowSink *sink) {
    NodeRow row = {node->parent, node->site, node->code, node->depth, (int64_t)node->n, (int64_t)node->open,
                   (int64_t)node->counted};
    sink_put(sink, &row, sizeof row);
}

static void put_histogram(const Node *node, RowSink *sink) {
    const Histogram *histogram = node->histogram;
    for (uint32_t at = 0; histogram && at < histogram->length; at++)
        if (histogram->counts[at])
            sink_put(sink, &(HistogramRow){node->number, histogram->low + at, (int64_t)histogram->counts[at]},
                     sizeof(HistogramRow));
}

static void put_waits(const Node *node, RowSink *sink) {
    const Waits *waits = node->waits;
    if (!waits) return;
    WaitRow row = {node->number, (int64_t)waits->n, {0}, {0}, waits->extremes.least, waits->extremes.most};
    sink_split(row.sum_w, waits->sum_w);
    sink_split(row.sum_ww, waits->sum_ww);
    sink_put(sink, &row, sizeof row);
}

void export_nodes(const Tree *tree, uint32_t table, RowSink *sink) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        const Node *node = node_at(tree, (int32_t)number);
        if (table == TABLE_NODES) put_node(node, sink);
        else if (table == TABLE_HISTOGRAM) put_histogram(node, sink);
        else if (table == TABLE_WAITS) put_waits(node, sink);
        else
            for (uint64_t metric = 0; metric < tree->lane_count; metric++) put_lane(node, metric, sink);
    }
}

/* ---- pairs ---- */

static void put_pair_lane(const Pair *pair, uint64_t metric, RowSink *sink) {
    const PairLane *lane = lane_find(pair->lanes, metric);
    Sum yy = lane ? lane->yy : 0;
    if (metric == METRIC_TIME || metric == METRIC_CPU) yy += pair->time;
    if (metric == METRIC_EVENTS) yy = pair->events;
    PairLaneRow row;
    sink_split(row.sum_yy, yy);
    sink_put(sink, &row, sizeof row);
}

static void put_pair(const Tree *tree, uint32_t table, const Node *node, const Pair *pair, RowSink *sink) {
    if (table == TABLE_PAIRS) sink_put(sink, &(PairRow){node->number, pair->i, pair->j}, sizeof(PairRow));
    for (uint64_t metric = 0; table == TABLE_PAIR_LANES && metric < tree->lane_count; metric++)
        put_pair_lane(pair, metric, sink);
}

void export_pairs(const Tree *tree, uint32_t table, RowSink *sink) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        const Node *node = node_at(tree, (int32_t)number);
        if (node->local.i == LOCAL) put_pair(tree, table, node, &node->local, sink);
        for (uint32_t at = 0; at < node->pair_count; at++) put_pair(tree, table, node, &node->pairs[at], sink);
    }
}

/* ---- links ---- */

static LinkSums sums_of(const LinkTotals *totals, const LinkDetails *details, uint64_t metric) {
    const LinkLane *lane = lane_find(details->lanes, metric);
    LinkSums sums = lane ? lane->sums : (LinkSums){0};
    if (metric == METRIC_EVENTS) return totals->events;
    if (metric >= METRIC_MORE) return sums;
    return (LinkSums){sums.ky + totals->time_ky, sums.y + totals->time_y, sums.yy + totals->time_yy,
                      sums.yx + totals->time_yx};
}

static void put_link_lane(LinkSums sums, RowSink *sink) {
    LinkLaneRow row;
    sink_split(row.sum_ky, sums.ky);
    sink_split(row.sum_y, sums.y);
    sink_split(row.sum_yy, sums.yy);
    sink_split(row.sum_yx, sums.yx);
    sink_put(sink, &row, sizeof row);
}

static void put_link_row(const Node *node, const Link *link, const LinkTotals *totals, RowSink *sink) {
    LinkRow row = {node->number, link->node, (int64_t)totals->n, (int64_t)totals->n_once, {0}, {0}};
    sink_split(row.sum_k, totals->k);
    sink_split(row.sum_kk, totals->kk);
    sink_put(sink, &row, sizeof row);
}

static void put_link(const Tree *tree, uint32_t table, const Node *node, uint32_t at, RowSink *sink) {
    const Link *link = &node->links[at];
    const LinkDetails *details = &node->link_details[at];
    LinkTotals totals = repeats_link_totals(node, at);
    if (table == TABLE_LINKS) put_link_row(node, link, &totals, sink);
    for (uint64_t metric = 0; table == TABLE_LINK_LANES && metric < tree->lane_count; metric++)
        put_link_lane(sums_of(&totals, details, metric), sink);
}

void export_links(const Tree *tree, uint32_t table, RowSink *sink) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        const Node *node = node_at(tree, (int32_t)number);
        for (uint32_t at = 0; at < node->link_count; at++) put_link(tree, table, node, at, sink);
    }
}
