/* Links of an ancestor to what was called below it, and how that gets there: from bag to bag, one caller at a time. */
#include "bag.h"
#include "lanes.h"
#include "moments.h"
#include "nodes.h"
#include "table.h"

static int enlarge(Tree *tree, Node *node) {
    uint64_t old = node->link_capacity, new = old ? old * 2 : 2;
    if (!arena_enlarge(&tree->arena, (void **)&node->more, old * sizeof(LinkMore), new * sizeof(LinkMore))) return 0;
    if (!arena_enlarge(&tree->arena, (void **)&node->links, old * sizeof(Link), new * sizeof(Link))) return 0;
    node->link_capacity = (uint32_t)new;
    return 1;
}

/* A new link at the end of a node's; the position, -1 if the bound or the arena refuses. */
static int64_t made(Tree *tree, Node *node, int32_t below) {
    uint32_t at = node->link_count;
    if (tree->links >= tree->limits.links) {
        tree->links_left_out++;
        return -1;
    }
    if (at == node->link_capacity && !enlarge(tree, node)) return -1;
    if (!table_put(&tree->arena, &tree->link_index, (uint32_t)node->number, (uint32_t)below, 0, at + 1)) return -1;
    node->links[at] = (Link){.node = below};
    tree->links++;
    return node->link_count++;
}

int64_t links_find(const Tree *tree, const Node *node, int32_t below) {
    return (int64_t)table_get(&tree->link_index, (uint32_t)node->number, (uint32_t)below, 0) - 1;
}

static __attribute__((noinline)) Link *seek(Tree *tree, Node *node, int32_t below, uint32_t *cursor) {
    int64_t at = links_find(tree, node, below);
    if (at < 0) at = made(tree, node, below);
    if (at < 0) return NULL;
    *cursor = (uint32_t)at + 1;
    return &node->links[at];
}

/* ---- runs ---- */

void links_settle(const Link *link, Settled *settled) {
    Sum repeats = link->repeats, k = link->calls, y = link->events;
    settled->n += link->repeats;
    if (link->calls == 1) settled->n_once += link->repeats;
    settled->k += k * repeats;
    settled->kk += k * k * repeats;
    settled->time_ky += k * widened(link->time);
    settled->time_y += widened(link->time);
    settled->events.ky += k * y * repeats;
    settled->events.y += y * repeats;
    settled->events.yy += y * y * repeats;
    settled->events.yx += y * link->ancestor_events;
}

static Settled *settled_of(Tree *tree, LinkMore *more) {
    if (!more->settled) more->settled = arena_alloc(&tree->arena, sizeof(Settled));
    return more->settled;
}

/* Numbers too large for a run: it would take an hour to get there, but exact is exact. */
static void add_huge(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events) {
    Settled *settled = settled_of(tree, &node->more[link - node->links]);
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

/* End the run, if there is one, and begin that of the touch. */
static __attribute__((noinline)) void turn(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events) {
    Settled *settled = link->repeats ? settled_of(tree, &node->more[link - node->links]) : NULL;
    if (settled) links_settle(link, settled);
    int huge = (touch->calls | (uint64_t)touch->events) >> 32 != 0;
    if (huge) add_huge(tree, node, link, touch, events);
    link->repeats = !huge;
    link->calls = huge ? 0 : (uint32_t)touch->calls;
    link->events = huge ? 0 : (uint32_t)touch->events;
    link->time = huge ? 0 : touch->time;
    link->ancestor_events = huge ? 0 : (uint64_t)events;
}

/* One invocation of the ancestor, of cost x. */
static inline void add(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t x, int64_t events) {
    link->time_yy += product(touch->time, touch->time);
    link->time_yx += product(touch->time, x);
    if (link->calls != touch->calls || link->events != (uint64_t)touch->events || link->repeats == UINT32_MAX) {
        turn(tree, node, link, touch, events);
        return;
    }
    link->repeats++;
    link->time = plus(link->time, touch->time);
    link->ancestor_events += (uint64_t)events;
}

static void add_bag(Tree *tree, const Frame *done, const Bag *below, uint32_t *cursor) {
    Node *node = done->node;
    int64_t x = done->x, events = done->events;
    uint32_t at = *cursor;
    for (const Touch *touch = below->items, *end = touch + below->count; touch < end; touch++) {
        int right = at < node->link_count && node->links[at].node == touch->node;
        Link *link = right ? &node->links[at++] : seek(tree, node, touch->node, &at);
        if (link) add(tree, node, link, touch, x, events);
    }
    *cursor = at;
}

/* ---- from bag to bag ---- */

/* Whether a descendant is 2 ... max_distance below a caller at depth floor; its own kids are not its deeper ones. */
static inline int within(const Touch *touch, int32_t floor, uint32_t max_distance) {
    return (uint32_t)(touch->depth - floor - 2) < max_distance - 1;
}

/* Into an empty bag, which has room for it: no look at what is there. */
static void copy_up(const Bag *below, Bag *up, int32_t floor, uint32_t max_distance) {
    Touch *to = up->items + up->count;
    for (const Touch *touch = below->items, *end = touch + below->count; touch < end; touch++) {
        *to = *touch;
        to += within(touch, floor, max_distance);
    }
    up->count = (uint32_t)(to - up->items);
}

static void add_up(Arena *arena, const Bag *below, Bag *up, int32_t floor, uint32_t max_distance) {
    for (const Touch *touch = below->items, *end = touch + below->count; touch < end; touch++)
        if (within(touch, floor, max_distance)) bag_add(arena, up, touch);
}

/* The kids of an invocation are one level below it, or above (folded), and deeper ones at least two: no node is in both. */
static void pass_up(Tree *tree, const Frame *done, Frame *caller) {
    Bag *up = &caller->deeper;
    int32_t floor = caller->node->depth;
    uint32_t reach = tree->max_distance;
    up->next = 0;
    if (up->count) {
        add_up(&tree->arena, &done->kids, up, floor, reach);
        add_up(&tree->arena, &done->deeper, up, floor, reach);
        return;
    }
    while (up->capacity <= done->kids.count + done->deeper.count)
        if (!bag_grow(&tree->arena, up)) return;
    copy_up(&done->kids, up, floor, reach);
    copy_up(&done->deeper, up, floor, reach);
}

void links_add(Tree *tree, const Frame *done, Frame *caller) {
    uint32_t cursor = 0;
    add_bag(tree, done, &done->kids, &cursor);
    add_bag(tree, done, &done->deeper, &cursor);
    if (caller) pass_up(tree, done, caller);
}
