#include "links.h"

#include "bag.h"
#include "chains.h"
#include "repeats.h"

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

/* ---- an invocation ---- */

/* Two neighbouring fields of a Link, added to and stored at once: fewer stores made deep chains 1 to 2 ns an event faster. */
typedef uint64_t Two __attribute__((vector_size(16), may_alias));

/* One invocation of the ancestor, of cost x. Of two numbers below 2^31 the product is below 2^62. */
static inline void add(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t x, int64_t events) {
    uint64_t time = (uint64_t)touch->time;
    if ((time | (uint64_t)x) >> 31) repeats_add_wide(tree, node, link, touch->time, x);
    else {
        Two *sums = (Two *)&link->time_yy, products = {time * time, time * (uint64_t)x};
        *sums = products += *sums;
        if ((products[0] | products[1]) >> 63) repeats_move_products(tree, node, link);
    }
    if (link->calls != touch->calls || link->events != (uint64_t)touch->events || link->repeats == UINT32_MAX) {
        repeats_begin_run(tree, node, link, touch, events);
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

/* The links of an invocation in line, whose touches need not be copied. */
static void add_line(Tree *tree, const Frame *done) {
    Cursor next = add_bag(tree, done, &done->kids, (Cursor){done->node->links, NULL}, 0, 0);
    done->node->last.first = (uint32_t)(next.link - done->node->links) - 1;
    add_bag(tree, done, &done->deeper, next, 0, 0);
}

static void add_up_all(Tree *tree, const Frame *done, Frame *caller) {
    int32_t floor = caller->node->depth;
    caller->deeper.next = 0;
    add_up(&tree->arena, &done->kids, &caller->deeper, floor, tree->max_distance);
    add_up(&tree->arena, &done->deeper, &caller->deeper, floor, tree->max_distance);
}

/* The kids of an invocation are one level below it, or above (folded), and deeper ones at least two: no node is in both. */
static void add_all(Tree *tree, const Frame *done, Frame *caller) {
    Cursor next = {done->node->links, NULL};
    int copies = caller && ready(&tree->arena, &caller->deeper, done);
    if (!copies) {
        next = add_bag(tree, done, &done->kids, next, 0, 0);
        add_bag(tree, done, &done->deeper, next, 0, 0);
        if (caller) add_up_all(tree, done, caller);
        return;
    }
    Bag *up = &caller->deeper;
    up->next = 0;
    next.to = up->items;
    next = add_bag(tree, done, &done->kids, next, 1, caller->node->depth);
    next = add_bag(tree, done, &done->deeper, next, 1, caller->node->depth);
    up->count = (uint32_t)(next.to - up->items);
}

void links_add(Tree *tree, Stack *stack, const Frame *done, Frame *caller) {
    if (!chains_begin(tree, done, caller)) {
        add_all(tree, done, caller);
        return;
    }
    add_line(tree, done);
    if (caller && !chains_lend(stack, done, caller)) add_up_all(tree, done, caller);
}
