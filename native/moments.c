#include "moments.h"

#include <string.h>

#include "chains.h"
#include "lane_sums.h"
#include "lanes.h"
#include "links.h"
#include "pairs.h"
#include "repeats.h"

/* ---- histogram ---- */

static uint64_t bytes(uint32_t length) { return sizeof(Window) + length * sizeof(uint64_t); }

/* A window that holds the bucket too; whole powers of two, so that it seldom grows. */
static Window *widen(Arena *arena, Window **histogram, unsigned bucket) {
    Window *old = *histogram;
    uint32_t low = bucket / 4 * 4, high = low + 4;
    if (old && old->low < low) low = old->low;
    if (old && old->low + old->length > high) high = old->low + old->length;
    Window *wider = arena_alloc(arena, bytes(high - low));
    if (!wider) return NULL;
    wider->low = low;
    wider->length = high - low;
    if (old) memcpy(wider->counts + (old->low - low), old->counts, old->length * sizeof(uint64_t));
    if (old) arena_free(arena, old, bytes(old->length));
    return *histogram = wider;
}

void moments_count(Arena *arena, Window **histogram, unsigned bucket) {
    Window *window = *histogram;
    if (!window || bucket - window->low >= window->length) window = widen(arena, histogram, bucket);
    if (window) window->counts[bucket - window->low]++;
}

/* ---- the node itself ---- */

/* How many invocations of the node were off the CPU: their times are in that lane. */
static uint64_t apart(const Node *node) {
    const NodeLane *lane = lane_find(node->lanes, METRIC_CPU);
    return lane ? lane->n : 0;
}

static void add_cost(Node *node, const Frame *done) {
    int64_t x = done->x, events = done->events;
    if (!lane_find(done->changes, METRIC_CPU)) extremes_see(&node->time, node->n - apart(node), x);
    extremes_see(&node->events, node->n, events);
    node->time_x += widened(x);
    node->time_xx += product(x, x);
    node->events_x += widened(events);
    node->events_xx += product(events, events);
}

static Own own_of(const Frame *done) {
    Own own = {done->x, done->events};
    for (uint32_t at = 0; at < done->kids.count; at++) {
        own.time = since(own.time, done->kids.items[at].time);
        own.events = since(own.events, done->kids.items[at].events);
    }
    return own;
}

Own moments_add(Tree *tree, Stack *stack, Frame *done, Frame *caller) {
    Node *node = done->node;
    Own own = own_of(done);
    add_cost(node, done);
    pairs_add(tree, node, &done->kids, own);
    if (done->kids.count && tree->max_distance) links_add(tree, stack, done, caller);
    if (done->changes) lane_sums_add(tree, done, caller);
    node->n++;
    return own;
}

void moments_wait(Tree *tree, Node *node, int64_t waited) {
    if (!node->waits) node->waits = arena_alloc(&tree->arena, sizeof(Waits));
    Waits *waits = node->waits;
    if (!waits) return;
    if (!waits->n) waits->extremes.most = waited;
    extremes_see(&waits->extremes, waits->n, waited);
    waits->sum_w += widened(waited);
    waits->sum_ww += product(waited, waited);
    waits->n++;
}

/* ---- an invocation as the last one ---- */

static inline int leaf_repeats(Leaves *leaves, const Frame *done) {
    uint64_t x = (uint64_t)done->x, xx = leaves->xx + x * x;
    if (leaves->events != done->events || !leaves->begun || (x | xx >> 32) >> 31) return 0;
    leaves->n++;
    leaves->x += x;
    leaves->xx = xx;
    return 1;
}

/* One that moments_add sees; the next ones may be as it is. */
static __attribute__((noinline)) void begin_leaves(Node *node, const Frame *done) {
    repeats_settle_leaves(node);
    node->leaves = (Leaves){.events = done->events, .begun = !done->changes};
}

/* The first of a batch was seen already, so there are extremes. */
static inline void see(Node *node, const Frame *done) {
    node->n++;
    if (done->x < node->time.least) node->time.least = done->x;
    if (done->x > node->time.most) node->time.most = done->x;
}

int moments_repeat(Tree *tree, Stack *stack, Frame *done, Frame *caller, Own *own) {
    Node *node = done->node;
    const Touch *kid = done->kids.items;
    if (!done->kids.count) {
        if (done->changes || !leaf_repeats(&node->leaves, done)) return begin_leaves(node, done), 0;
        *own = (Own){done->x, done->events};
    } else {
        if (done->changes || !stack || !chains_repeat(tree, stack, done, caller)) return repeats_settle_node(tree, node), 0;
        *own = (Own){since(done->x, kid->time), since(done->events, kid->events)};
    }
    see(node, done);
    return 1;
}
