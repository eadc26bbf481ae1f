#include "lane_sums.h"

#include "descendants.h"
#include "lanes.h"
#include "links.h"
#include "pairs.h"

/* A cost in a metric, and what of it the sums in time have already: for METRIC_CPU the time, from which the time off
 * the CPU is subtracted; else nothing. */
typedef struct LaneCost {
    int64_t time, cost;
} LaneCost;

static LaneCost lane_cost(uint64_t metric, int64_t time, const Lane *changes) {
    int64_t value = lane_value(changes, metric);
    return metric == METRIC_CPU ? (LaneCost){time, minus(time, value)} : (LaneCost){0, value};
}

static LaneCost descendant_cost(uint64_t metric, const Descendants *all, uint32_t at) {
    return lane_cost(metric, all->items[at].time, all->changes ? all->changes[at] : NULL);
}

/* The product of two costs, less what the sums in time have of it. */
static Sum difference(LaneCost a, LaneCost b) { return product(a.cost, b.cost) - product(a.time, b.time); }

static LaneCost without(LaneCost whole, LaneCost part) {
    return (LaneCost){minus(whole.time, part.time), minus(whole.cost, part.cost)};
}

static void add_node(Tree *tree, Node *node, uint64_t metric, int64_t time, LaneCost x) {
    NodeLane *lane = lane_ensure(&tree->arena, &node->lanes, metric, sizeof(NodeLane));
    if (!lane) return;
    extremes_include(&lane->cost, lane->n, x.cost);
    extremes_include(&lane->time, lane->n, time);
    lane->n++;
    lane->x += widen(minus(x.cost, x.time));
    lane->xx += difference(x, x);
}

/* ---- pairs ---- */

static void add_pair(Tree *tree, Pair *pair, uint64_t metric, Sum yy) {
    PairLane *lane = yy && pair ? lane_ensure(&tree->arena, &pair->lanes, metric, sizeof(PairLane)) : NULL;
    if (lane) lane->yy += yy;
}

/* The costs of the parts. OTHER, which is the first of them, has what the others leave of the whole. */
static void find_costs(LaneCost *costs, uint64_t metric, const Part *parts, unsigned size, const Descendants *callees,
                       LaneCost x, LaneCost exclusive) {
    costs[0] = x;
    for (unsigned at = parts[0].node == OTHER; at < size; at++) {
        costs[at] = parts[at].node == LOCAL ? exclusive : descendant_cost(metric, callees, parts[at].callee);
        if (parts[0].node == OTHER) costs[0] = without(costs[0], costs[at]);
    }
}

static void add_pairs(Tree *tree, const Invocation *completed, uint64_t metric, const Part *parts, unsigned size,
                      LaneCost x, LaneCost exclusive) {
    LaneCost costs[MAX_PARTS];
    uint32_t cursor = 0;
    unsigned times;
    find_costs(costs, metric, parts, size, &completed->callees, x, exclusive);
    for (unsigned a = 0; a < size; a++)
        for (unsigned b = a; b < size; b++) {
            Pair *pair = pairs_ensure(tree, completed->node, parts[a].node, parts[b].node, &cursor, &times);
            add_pair(tree, pair, metric, difference(costs[a], costs[b]) * times);
        }
}

/* ---- links ---- */

static void add_link(Tree *tree, Node *node, const Descendant *descendant, uint64_t metric, LaneCost y, LaneCost x) {
    int64_t at = links_find(tree, node, descendant->node);
    LinkSums more = {.y = widen(minus(y.cost, y.time)), .yy = difference(y, y), .yx = difference(y, x)};
    if (at < 0 || !(more.y || more.yy || more.yx)) return;
    LinkLane *lane = lane_ensure(&tree->arena, &node->link_details[at].lanes, metric, sizeof(LinkLane));
    if (!lane) return;
    lane->sums.ky += more.y * descendant->calls;
    lane->sums.y += more.y;
    lane->sums.yy += more.yy;
    lane->sums.yx += more.yx;
}

static void add_links(Tree *tree, const Invocation *completed, const Descendants *all, uint64_t metric, LaneCost x) {
    for (uint32_t at = 0; at < all->count; at++)
        add_link(tree, completed->node, &all->items[at], metric, descendant_cost(metric, all, at), x);
}

/* Hand the descendants' changes on to the caller, as links_add has done with their times. They may lie in an earlier
 * segment of a generator, which another caller paid for: then this caller gets a cell of 0, because lane_sums_add
 * looks only at its metrics. */
static void hand_on(Tree *tree, const Descendants *from, Invocation *caller) {
    Arena *arena = &tree->arena;
    for (uint32_t at = 0; from->changes && at < from->count; at++) {
        if (!from->changes[at]) continue;
        uint32_t place = descendants_position(arena, &caller->deeper, from->items[at].node);
        Lane **changes = place < caller->deeper.count ? descendants_changes(arena, &caller->deeper, place) : NULL;
        if (!changes) continue;
        lane_merge(arena, changes, from->changes[at]);
        for (const Lane *lane = *changes; lane; lane = lane->next)
            lane_add(arena, &caller->segment_changes, lane->metric, 0);
    }
}

/* ---- an invocation ---- */

static void add_metric(Tree *tree, const Invocation *completed, uint64_t metric, const Part *parts, unsigned size) {
    Node *node = completed->node;
    LaneCost x = lane_cost(metric, completed->time, completed->changes), exclusive = x;
    for (uint32_t at = 0; at < completed->callees.count; at++)
        exclusive = without(exclusive, descendant_cost(metric, &completed->callees, at));
    add_node(tree, node, metric, completed->time, x);
    add_pairs(tree, completed, metric, parts, size, x, exclusive);
    FunctionLane *lane = lane_ensure(&tree->arena, &node->function->lanes, metric, sizeof(FunctionLane));
    if (lane) lane->self += widen(minus(exclusive.cost, exclusive.time));
    if (!tree->max_distance) return;
    add_links(tree, completed, &completed->callees, metric, x);
    add_links(tree, completed, &completed->deeper, metric, x);
}

void lane_sums_add(Tree *tree, Invocation *completed, Invocation *caller) {
    Part parts[MAX_PARTS];
    int64_t exclusive = completed->time;
    for (uint32_t at = 0; at < completed->callees.count; at++)
        exclusive = minus(exclusive, completed->callees.items[at].time);
    unsigned size = pairs_find_parts(parts, &completed->callees, exclusive);
    for (const Lane *lane = completed->changes; lane; lane = lane->next)
        add_metric(tree, completed, lane->metric, parts, size);
    if (!caller || !completed->callees.count || !tree->max_distance) return;
    hand_on(tree, &completed->callees, caller);
    hand_on(tree, &completed->deeper, caller);
}
