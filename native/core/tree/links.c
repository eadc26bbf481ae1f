#include "links.h"

#include "chains.h"
#include "descendants.h"
#include "repeats.h"

static int enlarge(Tree *tree, Node *node) {
    uint64_t old = node->link_capacity, new = old ? old * 2 : 2;
    if (!arena_enlarge(&tree->arena, (void **)&node->link_details, old * sizeof(LinkDetails), new * sizeof(LinkDetails)))
        return 0;
    if (!arena_enlarge(&tree->arena, (void **)&node->links, old * sizeof(Link), new * sizeof(Link))) return 0;
    node->link_capacity = (uint32_t)new;
    return 1;
}

/* Append a link to a node's. Gives its position, -1 if the bound or the arena refuses. */
static int64_t create(Tree *tree, Node *node, int32_t descendant) {
    uint32_t at = node->link_count;
    if (tree->link_count >= tree->limits.links) {
        tree->links_left_out++;
        return -1;
    }
    if (at == node->link_capacity && !enlarge(tree, node)) return -1;
    if (!table_put(&tree->arena, &tree->link_index, (uint32_t)node->number, (uint32_t)descendant, 0, at + 1)) return -1;
    node->links[at] = (Link){.node = descendant};
    tree->link_count++;
    return node->link_count++;
}

int64_t links_find(const Tree *tree, const Node *node, int32_t descendant) {
    return (int64_t)table_get(&tree->link_index, (uint32_t)node->number, (uint32_t)descendant, 0) - 1;
}

static __attribute__((noinline)) Link *find_or_create(Tree *tree, Node *node, int32_t descendant) {
    int64_t at = links_find(tree, node, descendant);
    if (at < 0) at = create(tree, node, descendant);
    return at < 0 ? NULL : &node->links[at];
}

/* ---- one link ---- */

/* Two neighbouring fields of a Link, added to and stored at once: fewer stores made deep chains 1 to 2 ns an event
 * faster. */
typedef uint64_t Two __attribute__((vector_size(16), may_alias));

/* Add one invocation of the ancestor, of cost x. The product of two numbers below 2^31 is below 2^62. */
static inline void add(Tree *tree, Node *node, Link *link, const Descendant *descendant, int64_t x, int64_t events) {
    uint64_t time = (uint64_t)descendant->time;
    if ((time | (uint64_t)x) >> 31) repeats_add_wide(tree, node, link, descendant->time, x);
    else {
        Two *sums = (Two *)&link->time_yy, products = {time * time, time * (uint64_t)x};
        *sums = products += *sums;
        if ((products[0] | products[1]) >> 63) repeats_settle_products(tree, node, link);
    }
    if (link->calls != descendant->calls || link->events != (uint64_t)descendant->events || link->repeats == UINT32_MAX) {
        repeats_begin_run(tree, node, link, descendant, events);
        return;
    }
    link->repeats++;
    *(Two *)&link->time += (Two){time, (uint64_t)events}; /* and ancestor_events */
}

/* ---- from an invocation to its caller ---- */

/* Whether a descendant is 2 ... max_distance below a caller at this depth. The caller's own callees are not its
 * deeper ones. */
static inline int is_within(const Descendant *descendant, int32_t depth, uint32_t max_distance) {
    return (uint32_t)(descendant->depth - depth - 2) < max_distance - 1;
}

/* The link that is guessed to be the next descendant's, and where in the caller's empty array that descendant goes. */
typedef struct Cursor {
    Link *link;
    Descendant *to;
} Cursor;

/* Add descendants to the links, and copy them to the caller's array if that is ready, so that each is looked at
 * once. This is inlined, so that the usual way has no test of `copies`; and no cursor's address is taken, or the
 * loop would keep it in memory. */
static inline __attribute__((always_inline)) Cursor add_to_links(Tree *tree, const Invocation *completed,
                                                                 const Descendants *all, Cursor next, int copies,
                                                                 int32_t depth) {
    Node *node = completed->node;
    int64_t x = completed->time, events = completed->events;
    uint32_t reach = tree->max_distance;
    const Link *last = node->links + node->link_count;
    for (const Descendant *descendant = all->items, *end = descendant + all->count; descendant < end; descendant++) {
        if (copies) {
            *next.to = *descendant;
            next.to += is_within(descendant, depth, reach);
        }
        Link *link = next.link;
        if (link == last || link->node != descendant->node) {
            int64_t at = next.link - node->links;
            link = find_or_create(tree, node, descendant->node);
            last = node->links + node->link_count; /* the links may have moved */
            next.link = node->links + at;
            if (!link) continue;
        }
        next.link = link + 1;
        add(tree, node, link, descendant, x, events);
    }
    return next;
}

static void hand_on(Arena *arena, const Descendants *from, Descendants *to, int32_t depth, uint32_t max_distance) {
    for (const Descendant *descendant = from->items, *end = descendant + from->count; descendant < end; descendant++)
        if (is_within(descendant, depth, max_distance)) descendants_add(arena, to, descendant);
}

/* Whether the array is empty and has room for the descendants of an invocation. */
static int is_ready(Arena *arena, Descendants *to, const Invocation *completed) {
    if (to->count) return 0;
    while (to->capacity <= completed->callees.count + completed->deeper.count)
        if (!descendants_grow(arena, to)) return 0;
    return 1;
}

/* Add the links of an invocation in a chain, whose descendants need not be copied. */
static void add_chain(Tree *tree, const Invocation *completed) {
    Cursor next = add_to_links(tree, completed, &completed->callees, (Cursor){completed->node->links, NULL}, 0, 0);
    completed->node->repeated.first_link = (uint32_t)(next.link - completed->node->links) - 1;
    add_to_links(tree, completed, &completed->deeper, next, 0, 0);
}

static void hand_on_all(Tree *tree, const Invocation *completed, Invocation *caller) {
    int32_t depth = caller->node->depth;
    caller->deeper.guess = 0;
    hand_on(&tree->arena, &completed->callees, &caller->deeper, depth, tree->max_distance);
    hand_on(&tree->arena, &completed->deeper, &caller->deeper, depth, tree->max_distance);
}

/* Callees are one level below an invocation, or above it (folded), and deeper ones at least two: no node is among
 * both. */
static void add_all(Tree *tree, const Invocation *completed, Invocation *caller) {
    Cursor next = {completed->node->links, NULL};
    int copies = caller && is_ready(&tree->arena, &caller->deeper, completed);
    if (!copies) {
        next = add_to_links(tree, completed, &completed->callees, next, 0, 0);
        add_to_links(tree, completed, &completed->deeper, next, 0, 0);
        if (caller) hand_on_all(tree, completed, caller);
        return;
    }
    Descendants *to = &caller->deeper;
    to->guess = 0;
    next.to = to->items;
    next = add_to_links(tree, completed, &completed->callees, next, 1, caller->node->depth);
    next = add_to_links(tree, completed, &completed->deeper, next, 1, caller->node->depth);
    to->count = (uint32_t)(next.to - to->items);
}

void links_add(Tree *tree, Stack *stack, const Invocation *completed, Invocation *caller) {
    if (!chains_begin(tree, completed, caller)) {
        add_all(tree, completed, caller);
        return;
    }
    add_chain(tree, completed);
    if (caller && !chains_lend(stack, completed, caller)) hand_on_all(tree, completed, caller);
}
