#include "moments.h"

#include <string.h>

#include "chains.h"
#include "lane_sums.h"
#include "lanes.h"
#include "links.h"
#include "pairs.h"
#include "repeats.h"

/* ---- histogram ---- */

static uint64_t bytes_of(uint32_t length) { return sizeof(Histogram) + length * sizeof(uint64_t); }

/* Enlarge a histogram so that it holds the bucket too. It grows by whole powers of two, and so seldom. */
static Histogram *enlarge(Arena *arena, Histogram **histogram, unsigned bucket) {
    Histogram *old = *histogram;
    uint32_t low = bucket / 4 * 4, high = low + 4;
    if (old && old->low < low) low = old->low;
    if (old && old->low + old->length > high) high = old->low + old->length;
    Histogram *larger = arena_alloc(arena, bytes_of(high - low));
    if (!larger) return NULL;
    larger->low = low;
    larger->length = high - low;
    if (old) memcpy(larger->counts + (old->low - low), old->counts, old->length * sizeof(uint64_t));
    if (old) arena_free(arena, old, bytes_of(old->length));
    return *histogram = larger;
}

void histogram_count(Arena *arena, Histogram **histogram, unsigned bucket) {
    Histogram *enough = *histogram;
    if (!enough || bucket - enough->low >= enough->length) enough = enlarge(arena, histogram, bucket);
    if (enough) enough->counts[bucket - enough->low]++;
}

/* ---- any invocation ---- */

/* How many invocations of the node were off the CPU: the lane of CPU time has their times. */
static uint64_t count_off_cpu(const Node *node) {
    const NodeLane *lane = lane_find(node->lanes, METRIC_CPU);
    return lane ? lane->n : 0;
}

static void add_cost(Node *node, const Invocation *completed) {
    int64_t x = completed->time, events = completed->events;
    if (!lane_find(completed->changes, METRIC_CPU)) extremes_include(&node->time, node->n - count_off_cpu(node), x);
    extremes_include(&node->events, node->n + node->counted, events);
    node->time_x += widen(x);
    node->time_xx += product(x, x);
    node->events_x += widen(events);
    node->events_xx += product(events, events);
}

static ExclusiveCost exclusive_cost(const Invocation *completed) {
    ExclusiveCost exclusive = {completed->time, completed->events};
    for (uint32_t at = 0; at < completed->callees.count; at++) {
        exclusive.time = minus(exclusive.time, completed->callees.items[at].time);
        exclusive.events = minus(exclusive.events, completed->callees.items[at].events);
    }
    return exclusive;
}

ExclusiveCost moments_add(Tree *tree, Stack *stack, Invocation *completed, Invocation *caller) {
    Node *node = completed->node;
    ExclusiveCost exclusive = exclusive_cost(completed);
    add_cost(node, completed);
    pairs_add(tree, node, &completed->callees, exclusive);
    if (completed->callees.count && tree->max_distance) links_add(tree, stack, completed, caller);
    if (completed->changes) lane_sums_add(tree, completed, caller);
    node->n++;
    return exclusive;
}

void moments_count(Node *node) {
    extremes_include(&node->events, node->n + node->counted, 1);
    node->events_x++;
    node->events_xx++;
    node->local.i = node->local.j = LOCAL; /* it exists from now on */
    node->local.events++;
    node->counted++;
}

void moments_add_suspension(Tree *tree, Node *node, int64_t waited) {
    if (!node->waits) node->waits = arena_alloc(&tree->arena, sizeof(Waits));
    Waits *waits = node->waits;
    if (!waits) return;
    if (!waits->n) waits->extremes.most = waited;
    extremes_include(&waits->extremes, waits->n, waited);
    waits->sum_w += widen(waited);
    waits->sum_ww += product(waited, waited);
    waits->n++;
}

/* ---- an invocation like the last one ---- */

/* Add a leaf to the batch. 0 if it is not like the last one, or a sum would overflow. */
static inline int repeat_leaf(RepeatedLeaf *leaf, const Invocation *completed) {
    uint64_t x = (uint64_t)completed->time, xx = leaf->xx + x * x;
    if (leaf->events != completed->events || !leaf->is_begun || (x | xx >> 32) >> 31) return 0;
    leaf->n++;
    leaf->x += x;
    leaf->xx = xx;
    return 1;
}

/* Begin a batch after a leaf that moments_add adds: the next ones may be like it. */
static __attribute__((noinline)) void begin_leaves(Node *node, const Invocation *completed) {
    repeats_settle_leaves(node);
    node->repeated_leaf = (RepeatedLeaf){.events = completed->events, .is_begun = !completed->changes};
}

/* Count an invocation of a batch. The first of the batch has been counted, so there are extremes. */
static inline void count_repeated(Node *node, const Invocation *completed) {
    node->n++;
    if (completed->time < node->time.least) node->time.least = completed->time;
    if (completed->time > node->time.most) node->time.most = completed->time;
}

int moments_repeat(Tree *tree, Stack *stack, Invocation *completed, Invocation *caller, ExclusiveCost *exclusive) {
    Node *node = completed->node;
    const Descendant *callee = completed->callees.items;
    if (!completed->callees.count) {
        if (completed->changes || !repeat_leaf(&node->repeated_leaf, completed)) return begin_leaves(node, completed), 0;
        *exclusive = (ExclusiveCost){completed->time, completed->events};
    } else {
        if (completed->changes || !stack || !chains_repeat(tree, stack, completed, caller))
            return repeats_settle_calls(tree, node), 0;
        *exclusive = (ExclusiveCost){minus(completed->time, callee->time), minus(completed->events, callee->events)};
    }
    count_repeated(node, completed);
    return 1;
}
