#include "repeats.h"

#include <string.h>

#include "nodes.h"

/* ---- a run is settled ---- */

/* So many invocations of a link's run more, and what its times and the ancestor's events were in all. */
static void settle_more(const Link *link, uint64_t count, int64_t time, uint64_t ancestor_events, Settled *settled) {
    Sum repeats = count, k = link->calls, y = link->events;
    settled->n += count;
    if (link->calls == 1) settled->n_once += count;
    settled->k += k * repeats;
    settled->kk += k * k * repeats;
    settled->time_ky += k * widened(time);
    settled->time_y += widened(time);
    settled->events.ky += k * y * repeats;
    settled->events.y += y * repeats;
    settled->events.yy += y * y * repeats;
    settled->events.yx += y * ancestor_events;
}

static void settle(const Link *link, Settled *settled) {
    settle_more(link, link->repeats, link->time, link->ancestor_events, settled);
}

static void settle_times(const Link *link, Settled *settled) {
    settled->time_yy += link->time_yy;
    settled->time_yx += link->time_yx;
}

static Settled *settled_of(Tree *tree, Node *node, const Link *link) {
    LinkMore *more = &node->more[link - node->links];
    if (!more->settled) more->settled = arena_alloc(&tree->arena, sizeof(Settled));
    return more->settled;
}

/* Numbers too large for a run: it would take an hour to get there, but exact is exact. */
static void add_huge(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events) {
    Settled *settled = settled_of(tree, node, link);
    if (!settled) return;
    Sum k = touch->calls, y = widened(touch->events);
    settled->n++;
    settled->n_once += k == 1;
    settled->k += k;
    settled->kk += k * k;
    settled->time_ky += k * widened(touch->time);
    settled->time_y += widened(touch->time);
    LinkSums *sums = &settled->events;
    *sums = (LinkSums){sums->ky + k * y, sums->y + y, sums->yy + y * y, sums->yx + y * widened(events)};
}

void repeats_begin_run(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events) {
    Settled *settled = link->repeats ? settled_of(tree, node, link) : NULL;
    if (settled) settle(link, settled);
    int huge = (touch->calls | (uint64_t)touch->events) >> 32 != 0;
    if (huge) add_huge(tree, node, link, touch, events);
    link->repeats = !huge;
    link->calls = huge ? 0 : (uint32_t)touch->calls;
    link->events = huge ? 0 : (uint32_t)touch->events;
    link->time = huge ? 0 : touch->time;
    link->ancestor_events = huge ? 0 : (uint64_t)events;
}

void repeats_move_products(Tree *tree, Node *node, Link *link) {
    Settled *settled = settled_of(tree, node, link);
    if (settled) settle_times(link, settled);
    link->time_yy = link->time_yx = 0;
}

void repeats_add_wide(Tree *tree, Node *node, const Link *link, int64_t time, int64_t x) {
    Settled *settled = settled_of(tree, node, link);
    if (!settled) return;
    settled->time_yy += product(time, time);
    settled->time_yx += product(time, x);
}

/* ---- what the last invocations were ---- */

static uint64_t ancestor_events_of(const Last *last) { return last->repeats * (uint64_t)last->events; }

/* A run that is too long for its counter. */
static void settle_long(Tree *tree, Node *node, Link *link) {
    Settled *settled = settled_of(tree, node, link);
    if (!settled) return;
    settle(link, settled);
    settle_more(link, node->last.repeats, 0, ancestor_events_of(&node->last), settled);
    link->time = 0;
    link->repeats = 0;
    link->ancestor_events = 0;
}

/* What they add to a link, the sums of times among it. */
static void catch_up(Tree *tree, Node *node, Link *link, uint64_t y, uint64_t yy, uint64_t yx) {
    const Last *last = &node->last;
    link->time += (int64_t)y;
    link->time_yy += yy;
    link->time_yx += yx;
    if ((link->time_yy | link->time_yx) >> 63) repeats_move_products(tree, node, link);
    if (link->repeats + last->repeats > UINT32_MAX) {
        settle_long(tree, node, link);
        return;
    }
    link->repeats += (uint32_t)last->repeats;
    link->ancestor_events += ancestor_events_of(last);
}

static void catch_up_links(Tree *tree, Node *node) {
    const Last *last = &node->last;
    if (last->count) catch_up(tree, node, node->links + last->first, last->y, last->yy, last->yx);
    for (uint32_t at = 1; at < last->count; at++) {
        const Below *four = &last->deeper[(at - 1) / 4];
        uint32_t one = (at - 1) % 4;
        catch_up(tree, node, &node->links[last->first + at], four->y[one], four->yy[one], four->yx[one]);
    }
}

Settled repeats_settled_link(const Node *node, uint32_t at) {
    const Link *link = &node->links[at];
    const Settled *settled = node->more[at].settled;
    Settled all = settled ? *settled : (Settled){0};
    settle(link, &all);
    settle_times(link, &all);
    return all;
}

/* ---- batches of a node are settled ---- */

/* So many invocations of x in time, with xx of its squares; each of so many events. */
static void add_costs(Node *node, Sum count, uint64_t x, uint64_t xx, int64_t events) {
    node->time_x += x;
    node->time_xx += xx;
    node->events_x += count * widened(events);
    node->events_xx += count * product(events, events);
}

void repeats_settle_leaves(Node *node) {
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

void repeats_settle_node(Tree *tree, Node *node) {
    Last *last = &node->last;
    if (!last->repeats) return;
    add_costs(node, last->repeats, last->x, last->xx, last->events);
    add_pairs(node, last);
    catch_up_links(tree, node);
    last->repeats = last->bound = last->x = last->xx = last->y = last->yy = last->yx = 0;
    if (last->deeper) memset(last->deeper, 0, BELOW / 4 * sizeof(Below));
}

void repeats_settle(Tree *tree) {
    for (uint32_t number = 0; number < tree->nodes.count; number++) {
        Node *node = node_at(tree, (int32_t)number);
        repeats_settle_leaves(node);
        repeats_settle_node(tree, node);
    }
}
