#include "repeats.h"

#include <string.h>

#include "nodes.h"

/* ---- runs of a link ---- */

/* Add so many more invocations of a link's run, and the sums of Y in time and of X in events over them. */
static void settle_more(const Link *link, uint64_t count, int64_t time, uint64_t ancestor_events, LinkTotals *totals) {
    Sum repeats = count, k = link->calls, y = link->events;
    totals->n += count;
    if (link->calls == 1) totals->n_once += count;
    totals->k += k * repeats;
    totals->kk += k * k * repeats;
    totals->time_ky += k * widen(time);
    totals->time_y += widen(time);
    totals->events.ky += k * y * repeats;
    totals->events.y += y * repeats;
    totals->events.yy += y * y * repeats;
    totals->events.yx += y * ancestor_events;
}

static void settle_run(const Link *link, LinkTotals *totals) {
    settle_more(link, link->repeats, link->time, link->ancestor_events, totals);
}

static void settle_products(const Link *link, LinkTotals *totals) {
    totals->time_yy += link->time_yy;
    totals->time_yx += link->time_yx;
}

static LinkTotals *totals_of(Tree *tree, Node *node, const Link *link) {
    LinkDetails *details = &node->link_details[link - node->links];
    if (!details->totals) details->totals = arena_alloc(&tree->arena, sizeof(LinkTotals));
    return details->totals;
}

/* Add an invocation whose numbers are too large for a run. It takes an hour to get there, but exact is exact. */
static void add_huge(Tree *tree, Node *node, Link *link, const Descendant *descendant, int64_t events) {
    LinkTotals *totals = totals_of(tree, node, link);
    if (!totals) return;
    Sum k = descendant->calls, y = widen(descendant->events);
    totals->n++;
    totals->n_once += k == 1;
    totals->k += k;
    totals->kk += k * k;
    totals->time_ky += k * widen(descendant->time);
    totals->time_y += widen(descendant->time);
    LinkSums *sums = &totals->events;
    *sums = (LinkSums){sums->ky + k * y, sums->y + y, sums->yy + y * y, sums->yx + y * widen(events)};
}

void repeats_begin_run(Tree *tree, Node *node, Link *link, const Descendant *descendant, int64_t events) {
    LinkTotals *totals = link->repeats ? totals_of(tree, node, link) : NULL;
    if (totals) settle_run(link, totals);
    int is_huge = (descendant->calls | (uint64_t)descendant->events) >> 32 != 0;
    if (is_huge) add_huge(tree, node, link, descendant, events);
    link->repeats = !is_huge;
    link->calls = is_huge ? 0 : (uint32_t)descendant->calls;
    link->events = is_huge ? 0 : (uint32_t)descendant->events;
    link->time = is_huge ? 0 : descendant->time;
    link->ancestor_events = is_huge ? 0 : (uint64_t)events;
}

void repeats_settle_products(Tree *tree, Node *node, Link *link) {
    LinkTotals *totals = totals_of(tree, node, link);
    if (totals) settle_products(link, totals);
    link->time_yy = link->time_yx = 0;
}

void repeats_add_wide(Tree *tree, Node *node, const Link *link, int64_t time, int64_t x) {
    LinkTotals *totals = totals_of(tree, node, link);
    if (!totals) return;
    totals->time_yy += product(time, time);
    totals->time_yx += product(time, x);
}

/* ---- the links of a batch ---- */

static uint64_t ancestor_events_of(const RepeatedCall *call) { return call->n * (uint64_t)call->events; }

/* Settle a run that is too long for its counter. */
static void settle_long_run(Tree *tree, Node *node, Link *link) {
    LinkTotals *totals = totals_of(tree, node, link);
    if (!totals) return;
    settle_run(link, totals);
    settle_more(link, node->repeated.n, 0, ancestor_events_of(&node->repeated), totals);
    link->time = 0;
    link->repeats = 0;
    link->ancestor_events = 0;
}

/* Add the invocations of the batch to the run of a link; y, yy and yx are its sums of times. */
static void add_to_run(Tree *tree, Node *node, Link *link, uint64_t y, uint64_t yy, uint64_t yx) {
    const RepeatedCall *call = &node->repeated;
    link->time += (int64_t)y;
    link->time_yy += yy;
    link->time_yx += yx;
    if ((link->time_yy | link->time_yx) >> 63) repeats_settle_products(tree, node, link);
    if (link->repeats + call->n > UINT32_MAX) {
        settle_long_run(tree, node, link);
        return;
    }
    link->repeats += (uint32_t)call->n;
    link->ancestor_events += ancestor_events_of(call);
}

static void add_to_runs(Tree *tree, Node *node) {
    const RepeatedCall *call = &node->repeated;
    if (call->count) add_to_run(tree, node, node->links + call->first_link, call->y, call->yy, call->yx);
    for (uint32_t at = 1; at < call->count; at++) {
        const FourDescendants *four = &call->deeper[(at - 1) / 4];
        uint32_t one = (at - 1) % 4;
        add_to_run(tree, node, &node->links[call->first_link + at], four->y[one], four->yy[one], four->yx[one]);
    }
}

LinkTotals repeats_link_totals(const Node *node, uint32_t at) {
    const Link *link = &node->links[at];
    const LinkTotals *totals = node->link_details[at].totals;
    LinkTotals all = totals ? *totals : (LinkTotals){0};
    settle_run(link, &all);
    settle_products(link, &all);
    return all;
}

/* ---- batches of a node ---- */

/* Add so many invocations of X in time, and of XX of its squares, which all have the same events. */
static void add_costs(Node *node, Sum count, uint64_t x, uint64_t xx, int64_t events) {
    node->time_x += x;
    node->time_xx += xx;
    node->events_x += count * widen(events);
    node->events_xx += count * product(events, events);
}

void repeats_settle_leaves(Node *node) {
    RepeatedLeaf *leaf = &node->repeated_leaf;
    if (!leaf->n) return;
    add_costs(node, leaf->n, leaf->x, leaf->xx, leaf->events);
    node->local.time += leaf->xx;
    node->local.events += leaf->n * product(leaf->events, leaf->events);
    leaf->n = leaf->x = leaf->xx = 0;
}

/* The exclusive time is X - Y. */
static void add_pairs(Node *node, const RepeatedCall *call) {
    Pair *cross = &node->pairs[call->cross_pair], *callee = &node->pairs[call->callee_pair];
    int64_t below = call->callee.events, exclusive = minus(call->events, below);
    Sum count = call->n;
    node->local.time += (Sum)call->xx - call->yx - call->yx + call->yy;
    cross->time += (Sum)call->yx - call->yy;
    callee->time += call->yy;
    node->local.events += count * product(exclusive, exclusive);
    cross->events += count * product(exclusive, below);
    callee->events += count * product(below, below);
}

void repeats_settle_calls(Tree *tree, Node *node) {
    RepeatedCall *call = &node->repeated;
    if (!call->n) return;
    add_costs(node, call->n, call->x, call->xx, call->events);
    add_pairs(node, call);
    add_to_runs(tree, node);
    call->n = call->bound = call->x = call->xx = call->y = call->yy = call->yx = 0;
    if (call->deeper) memset(call->deeper, 0, MAX_REPEATED_DESCENDANTS / 4 * sizeof(FourDescendants));
}

void repeats_settle(Tree *tree) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        Node *node = node_at(tree, (int32_t)number);
        repeats_settle_leaves(node);
        repeats_settle_calls(tree, node);
    }
}
