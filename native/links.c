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

static __attribute__((noinline)) Link *seek(Tree *tree, Node *node, int32_t below) {
    int64_t at = links_find(tree, node, below);
    if (at < 0) at = made(tree, node, below);
    return at < 0 ? NULL : &node->links[at];
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

void links_settle_times(const Link *link, Settled *settled) {
    settled->time_yy += link->time_yy;
    settled->time_yx += link->time_yx;
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

/* The sums of products have become large: move them on before the next product makes them overflow. */
static __attribute__((noinline)) void move_on(Tree *tree, Node *node, Link *link) {
    Settled *settled = settled_of(tree, &node->more[link - node->links]);
    if (settled) links_settle_times(link, settled);
    link->time_yy = link->time_yx = 0;
}

/* Products of times that are negative or of two seconds and more. */
static __attribute__((noinline)) void add_wide(Tree *tree, Node *node, const Link *link, int64_t time, int64_t x) {
    Settled *settled = settled_of(tree, &node->more[link - node->links]);
    if (!settled) return;
    settled->time_yy += product(time, time);
    settled->time_yx += product(time, x);
}

/* Two neighbouring fields of a Link, added to and stored at once: fewer stores made deep chains 1 to 2 ns an event faster. */
typedef uint64_t Two __attribute__((vector_size(16), may_alias));

/* One invocation of the ancestor, of cost x. Of two numbers below 2^31 the product is below 2^62. */
static inline void add(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t x, int64_t events) {
    uint64_t time = (uint64_t)touch->time;
    if ((time | (uint64_t)x) >> 31) add_wide(tree, node, link, touch->time, x);
    else {
        Two *sums = (Two *)&link->time_yy, products = {time * time, time * (uint64_t)x};
        *sums = products += *sums;
        if ((products[0] | products[1]) >> 63) move_on(tree, node, link);
    }
    if (link->calls != touch->calls || link->events != (uint64_t)touch->events || link->repeats == UINT32_MAX) {
        turn(tree, node, link, touch, events);
        return;
    }
    link->repeats++;
    *(Two *)&link->time += (Two){time, (uint64_t)events}; /* and ancestor_events */
}

/* ---- from bag to bag ---- */

/* Whether a descendant is 2 ... max_distance below a caller at depth floor; its own kids are not its deeper ones. */
static inline int within(const Touch *touch, int32_t floor, uint32_t max_distance) {
    return (uint32_t)(touch->depth - floor - 2) < max_distance - 1;
}

/* The link guessed to be the next touch's, and where that touch goes to in the caller's empty bag. */
typedef struct Cursor {
    Link *link;
    Touch *to;
} Cursor;

/* Take in what was touched, and copy it up if the caller's bag is ready: each touch is looked at once. Inlined, so that
 * the usual way has no test of `copies`; no cursor's address is taken, or the loop would keep it in memory. */
static inline __attribute__((always_inline)) Cursor add_bag(Tree *tree, const Frame *done, const Bag *below, Cursor next,
                                                            int copies, int32_t floor) {
    Node *node = done->node;
    int64_t x = done->x, events = done->events;
    uint32_t reach = tree->max_distance;
    const Link *last = node->links + node->link_count;
    for (const Touch *touch = below->items, *end = touch + below->count; touch < end; touch++) {
        if (copies) {
            *next.to = *touch;
            next.to += within(touch, floor, reach);
        }
        Link *link = next.link;
        if (link == last || link->node != touch->node) {
            int64_t at = next.link - node->links;
            link = seek(tree, node, touch->node);
            last = node->links + node->link_count; /* they may have moved */
            next.link = node->links + at;
            if (!link) continue;
        }
        next.link = link + 1;
        add(tree, node, link, touch, x, events);
    }
    return next;
}

static void add_up(Arena *arena, const Bag *below, Bag *up, int32_t floor, uint32_t max_distance) {
    for (const Touch *touch = below->items, *end = touch + below->count; touch < end; touch++)
        if (within(touch, floor, max_distance)) bag_add(arena, up, touch);
}

/* Whether a bag is empty and has room for what an invocation touched. */
static int ready(Arena *arena, Bag *up, const Frame *done) {
    if (up->count) return 0;
    while (up->capacity <= done->kids.count + done->deeper.count)
        if (!bag_grow(arena, up)) return 0;
    return 1;
}

/* The kids of an invocation are one level below it, or above (folded), and deeper ones at least two: no node is in both. */
void links_add(Tree *tree, const Frame *done, Frame *caller) {
    Cursor next = {done->node->links, NULL};
    Bag *up = caller ? &caller->deeper : NULL;
    int32_t floor = caller ? caller->node->depth : 0;
    if (up) up->next = 0;
    if (up && ready(&tree->arena, up, done)) {
        next.to = up->items;
        next = add_bag(tree, done, &done->kids, next, 1, floor);
        next = add_bag(tree, done, &done->deeper, next, 1, floor);
        up->count = (uint32_t)(next.to - up->items);
        return;
    }
    next = add_bag(tree, done, &done->kids, next, 0, 0);
    add_bag(tree, done, &done->deeper, next, 0, 0);
    if (!up) return;
    add_up(&tree->arena, &done->kids, up, floor, tree->max_distance);
    add_up(&tree->arena, &done->deeper, up, floor, tree->max_distance);
}
