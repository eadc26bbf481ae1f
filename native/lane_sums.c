#include "lane_sums.h"

#include "bag.h"
#include "lanes.h"
#include "links.h"
#include "pairs.h"

/* A cost in time, and what a metric has of it: for METRIC_CPU that is the time less what was off the CPU. */
typedef struct Both {
    int64_t time, cost;
} Both;

static Both both(uint64_t metric, int64_t time, const Lane *changes) {
    int64_t value = lane_value(changes, metric);
    return metric == METRIC_CPU ? (Both){time, since(time, value)} : (Both){0, value};
}

static Both kid(uint64_t metric, const Bag *bag, uint32_t at) {
    return both(metric, bag->items[at].time, bag->changes ? bag->changes[at] : NULL);
}

static Sum gain(Both a, Both b) { return product(a.cost, b.cost) - product(a.time, b.time); }

static Both rest(Both whole, Both part) { return (Both){since(whole.time, part.time), since(whole.cost, part.cost)}; }

static void add_node(Tree *tree, Node *node, uint64_t metric, int64_t time, Both x) {
    NodeLane *lane = lane_of(&tree->arena, &node->lanes, metric, sizeof(NodeLane));
    if (!lane) return;
    extremes_see(&lane->cost, lane->n, x.cost);
    extremes_see(&lane->time, lane->n, time);
    lane->n++;
    lane->x += widened(since(x.cost, x.time));
    lane->xx += gain(x, x);
}

/* ---- pairs ---- */

static void add_pair(Tree *tree, Pair *pair, uint64_t metric, Sum yy) {
    PairLane *lane = yy && pair ? lane_of(&tree->arena, &pair->lanes, metric, sizeof(PairLane)) : NULL;
    if (lane) lane->yy += yy;
}

/* The parts' costs; OTHER, the first of them, has what the others leave of the whole. */
static void costs_of(Both *costs, uint64_t metric, const Part *parts, unsigned size, const Bag *kids, Both x, Both own) {
    costs[0] = x;
    for (unsigned at = parts[0].node == OTHER; at < size; at++) {
        costs[at] = parts[at].node == LOCAL ? own : kid(metric, kids, parts[at].kid);
        if (parts[0].node == OTHER) costs[0] = rest(costs[0], costs[at]);
    }
}

static void add_pairs(Tree *tree, const Frame *done, uint64_t metric, const Part *parts, unsigned size, Both x, Both own) {
    Both costs[MAX_PARTS];
    uint32_t cursor = 0;
    unsigned times;
    costs_of(costs, metric, parts, size, &done->kids, x, own);
    for (unsigned a = 0; a < size; a++)
        for (unsigned b = a; b < size; b++) {
            Pair *pair = pairs_of(tree, done->node, parts[a].node, parts[b].node, &cursor, &times);
            add_pair(tree, pair, metric, gain(costs[a], costs[b]) * times);
        }
}

/* ---- links ---- */

static void add_link(Tree *tree, Node *node, const Touch *touch, uint64_t metric, Both y, Both x) {
    int64_t at = links_find(tree, node, touch->node);
    LinkSums more = {.y = widened(since(y.cost, y.time)), .yy = gain(y, y), .yx = gain(y, x)};
    if (at < 0 || !(more.y || more.yy || more.yx)) return;
    LinkLane *lane = lane_of(&tree->arena, &node->more[at].lanes, metric, sizeof(LinkLane));
    if (!lane) return;
    lane->sums.ky += more.y * touch->calls;
    lane->sums.y += more.y;
    lane->sums.yy += more.yy;
    lane->sums.yx += more.yx;
}

static void add_links(Tree *tree, const Frame *done, const Bag *below, uint64_t metric, Both x) {
    for (uint32_t at = 0; at < below->count; at++)
        add_link(tree, done->node, &below->items[at], metric, kid(metric, below, at), x);
}

/* Let the caller know of the changes below, where links_add has told it of the times. They may lie in an earlier segment
 * of a generator, which another caller paid for: then this one has a cell of 0, for lane_sums_add looks at its metrics only. */
static void pass_up(Tree *tree, const Bag *below, Frame *caller) {
    Arena *arena = &tree->arena;
    for (uint32_t at = 0; below->changes && at < below->count; at++) {
        uint32_t place = below->changes[at] ? bag_seek(arena, &caller->deeper, below->items[at].node) : UINT32_MAX;
        Lane **changes = place < caller->deeper.count ? bag_changes(arena, &caller->deeper, place) : NULL;
        if (!changes) continue;
        lane_merge(arena, changes, below->changes[at]);
        for (const Lane *lane = *changes; lane; lane = lane->next)
            lane_change(arena, &caller->segment_changes, lane->metric, 0);
    }
}

/* ---- an invocation ---- */

static void add_metric(Tree *tree, const Frame *done, uint64_t metric, const Part *parts, unsigned size) {
    Node *node = done->node;
    Both x = both(metric, done->x, done->changes), own = x;
    for (uint32_t at = 0; at < done->kids.count; at++) own = rest(own, kid(metric, &done->kids, at));
    add_node(tree, node, metric, done->x, x);
    add_pairs(tree, done, metric, parts, size, x, own);
    CodeLane *code = lane_of(&tree->arena, &node->sums->lanes, metric, sizeof(CodeLane));
    if (code) code->self += widened(since(own.cost, own.time));
    if (!tree->max_distance) return;
    add_links(tree, done, &done->kids, metric, x);
    add_links(tree, done, &done->deeper, metric, x);
}

void lane_sums_add(Tree *tree, Frame *done, Frame *caller) {
    Part parts[MAX_PARTS];
    int64_t local = done->x;
    for (uint32_t at = 0; at < done->kids.count; at++) local = since(local, done->kids.items[at].time);
    unsigned size = pairs_gather(parts, &done->kids, local);
    for (const Lane *lane = done->changes; lane; lane = lane->next) add_metric(tree, done, lane->metric, parts, size);
    if (!caller || !done->kids.count || !tree->max_distance) return;
    pass_up(tree, &done->kids, caller);
    pass_up(tree, &done->deeper, caller);
}
