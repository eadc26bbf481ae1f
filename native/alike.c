#include "alike.h"

#include <string.h>

#include "chains.h"
#include "lanes.h"
#include "nodes.h"
#include "runs.h"

/* ---- batches end ---- */

/* So many invocations of x in time, with xx of its squares; each of so many events. */
static void add_costs(Node *node, Sum count, uint64_t x, uint64_t xx, int64_t events) {
    node->time_x += x;
    node->time_xx += xx;
    node->events_x += count * widened(events);
    node->events_xx += count * product(events, events);
}

static void settle_leaves(Node *node) {
    Leaves *leaves = &node->leaves;
    if (!leaves->n) return;
    add_costs(node, leaves->n, leaves->x, leaves->xx, leaves->events);
    node->local.time += leaves->xx;
    node->local.events += leaves->n * product(leaves->events, leaves->events);
    leaves->n = leaves->x = leaves->xx = 0;
}

/* Its own time is X - Y. */
static void add_pairs(Node *node, const Last *last) {
    Pair *cross = &node->pairs[last->cross], *same = &node->pairs[last->same];
    int64_t below = last->kid.events, own = since(last->events, below);
    Sum count = last->repeats;
    node->local.time += (Sum)last->xx - last->yx - last->yx + last->yy;
    cross->time += (Sum)last->yx - last->yy;
    same->time += last->yy;
    node->local.events += count * product(own, own);
    cross->events += count * product(own, below);
    same->events += count * product(below, below);
}

void alike_settle_last(Tree *tree, Node *node) {
    Last *last = &node->last;
    if (!last->repeats) return;
    add_costs(node, last->repeats, last->x, last->xx, last->events);
    add_pairs(node, last);
    runs_catch_up(tree, node);
    last->repeats = last->bound = last->x = last->xx = last->y = last->yy = last->yx = 0;
    if (last->deeper) memset(last->deeper, 0, BELOW / 4 * sizeof(Below));
}

void alike_settle(Tree *tree) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        Node *node = node_at(tree, (int32_t)number);
        settle_leaves(node);
        alike_settle_last(tree, node);
    }
}

/* ---- leaves ---- */

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
    settle_leaves(node);
    node->leaves = (Leaves){.events = done->events, .begun = !done->changes};
}

/* ---- both ---- */

/* The first of a batch was seen already, so there are extremes. */
static inline void see(Node *node, const Frame *done) {
    node->n++;
    if (done->x < node->time.least) node->time.least = done->x;
    if (done->x > node->time.most) node->time.most = done->x;
}

int alike_add(Tree *tree, Stack *stack, Frame *done, Frame *caller, Own *own) {
    Node *node = done->node;
    const Touch *kid = done->kids.items;
    if (!done->kids.count) {
        if (done->changes || !leaf_repeats(&node->leaves, done)) return begin_leaves(node, done), 0;
        *own = (Own){done->x, done->events};
    } else {
        if (done->changes || !stack || !chains_repeat(tree, stack, done, caller)) return alike_settle_last(tree, node), 0;
        *own = (Own){since(done->x, kid->time), since(done->events, kid->events)};
    }
    see(node, done);
    return 1;
}
