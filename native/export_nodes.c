/* Rows of nodes, their pairs and their links. A lane without a cell somewhere is 0 there; METRIC_CPU is time then. */
#include "export.h"
#include "lanes.h"
#include "nodes.h"
#include "repeats.h"

/* ---- nodes ---- */

static Extremes joined(Extremes a, Extremes b) {
    return (Extremes){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
}

/* Extremes over all n invocations: those with a cell, and the others' `rest`. */
static Extremes extremes_of(const Node *node, const NodeLane *lane, Extremes cell, Extremes rest) {
    if (!lane) return rest;
    return lane->n == node->n ? cell : joined(cell, rest);
}

static void put_node_lane(Sink *sink, Sum x, Sum xx, Extremes extremes) {
    NodeLaneRow row = {.min_x = extremes.least, .max_x = extremes.most};
    sink_sum(row.sum_x, x);
    sink_sum(row.sum_xx, xx);
    sink_put(sink, &row, sizeof row);
}

static void node_lane(const Node *node, uint64_t metric, Sink *sink) {
    const NodeLane *lane = lane_find(node->lanes, metric == METRIC_TIME ? METRIC_CPU : metric);
    const NodeLane none = {0}, *own = lane ? lane : &none;
    Extremes plain = metric < METRIC_MORE ? node->time : (Extremes){0};
    Extremes extremes = extremes_of(node, lane, metric == METRIC_TIME ? own->time : own->cost, plain);
    if (metric == METRIC_TIME) put_node_lane(sink, node->time_x, node->time_xx, extremes);
    else if (metric == METRIC_CPU) put_node_lane(sink, node->time_x + own->x, node->time_xx + own->xx, extremes);
    else if (metric == METRIC_EVENTS) put_node_lane(sink, node->events_x, node->events_xx, node->events);
    else put_node_lane(sink, own->x, own->xx, extremes);
}

static void node_row(const Node *node, Sink *sink) {
    NodeRow row = {node->parent, node->site, node->code, node->depth, (int64_t)node->n, (int64_t)node->open};
    sink_put(sink, &row, sizeof row);
}

static void histogram(const Node *node, Sink *sink) {
    const Window *window = node->histogram;
    for (uint32_t at = 0; window && at < window->length; at++)
        if (window->counts[at])
            sink_put(sink, &(HistogramRow){node->number, window->low + at, (int64_t)window->counts[at]}, sizeof(HistogramRow));
}

static void waits(const Node *node, Sink *sink) {
    const Waits *waits = node->waits;
    if (!waits) return;
    WaitRow row = {node->number, (int64_t)waits->n, {0}, {0}, waits->extremes.least, waits->extremes.most};
    sink_sum(row.sum_w, waits->sum_w);
    sink_sum(row.sum_ww, waits->sum_ww);
    sink_put(sink, &row, sizeof row);
}

void export_nodes(const Tree *tree, uint32_t table, Sink *sink) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        const Node *node = node_at(tree, (int32_t)number);
        if (table == TABLE_NODES) node_row(node, sink);
        else if (table == TABLE_HISTOGRAM) histogram(node, sink);
        else if (table == TABLE_WAITS) waits(node, sink);
        else
            for (uint64_t metric = 0; metric < tree->lanes; metric++) node_lane(node, metric, sink);
    }
}

/* ---- pairs ---- */

static void pair_lane(const Pair *pair, uint64_t metric, Sink *sink) {
    const PairLane *lane = lane_find(pair->lanes, metric);
    Sum yy = lane ? lane->yy : 0;
    if (metric == METRIC_TIME || metric == METRIC_CPU) yy += pair->time;
    if (metric == METRIC_EVENTS) yy = pair->events;
    PairLaneRow row;
    sink_sum(row.sum_yy, yy);
    sink_put(sink, &row, sizeof row);
}

static void pair(const Tree *tree, uint32_t table, const Node *node, const Pair *pair, Sink *sink) {
    if (table == TABLE_PAIRS) sink_put(sink, &(PairRow){node->number, pair->i, pair->j}, sizeof(PairRow));
    for (uint64_t metric = 0; table == TABLE_PAIR_LANES && metric < tree->lanes; metric++) pair_lane(pair, metric, sink);
}

void export_pairs(const Tree *tree, uint32_t table, Sink *sink) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        const Node *node = node_at(tree, (int32_t)number);
        if (node->local.i == LOCAL) pair(tree, table, node, &node->local, sink);
        for (uint32_t at = 0; at < node->pair_count; at++) pair(tree, table, node, &node->pairs[at], sink);
    }
}

/* ---- links ---- */

static LinkSums sums_of(const Settled *all, const LinkMore *more, uint64_t metric) {
    const LinkLane *lane = lane_find(more->lanes, metric);
    LinkSums sums = lane ? lane->sums : (LinkSums){0};
    if (metric == METRIC_EVENTS) return all->events;
    if (metric >= METRIC_MORE) return sums;
    return (LinkSums){sums.ky + all->time_ky, sums.y + all->time_y, sums.yy + all->time_yy, sums.yx + all->time_yx};
}

static void link_lane(LinkSums sums, Sink *sink) {
    LinkLaneRow row;
    sink_sum(row.sum_ky, sums.ky);
    sink_sum(row.sum_y, sums.y);
    sink_sum(row.sum_yy, sums.yy);
    sink_sum(row.sum_yx, sums.yx);
    sink_put(sink, &row, sizeof row);
}

static void link_row(const Node *node, const Link *link, const Settled *all, Sink *sink) {
    LinkRow row = {node->number, link->node, (int64_t)all->n, (int64_t)all->n_once, {0}, {0}};
    sink_sum(row.sum_k, all->k);
    sink_sum(row.sum_kk, all->kk);
    sink_put(sink, &row, sizeof row);
}

static void link_of(const Tree *tree, uint32_t table, const Node *node, uint32_t at, Sink *sink) {
    const Link *link = &node->links[at];
    const LinkMore *more = &node->more[at];
    Settled all = repeats_settled_link(node, at);
    if (table == TABLE_LINKS) link_row(node, link, &all, sink);
    for (uint64_t metric = 0; table == TABLE_LINK_LANES && metric < tree->lanes; metric++)
        link_lane(sums_of(&all, more, metric), sink);
}

void export_links(const Tree *tree, uint32_t table, Sink *sink) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        const Node *node = node_at(tree, (int32_t)number);
        for (uint32_t at = 0; at < node->link_count; at++) link_of(tree, table, node, at, sink);
    }
}
