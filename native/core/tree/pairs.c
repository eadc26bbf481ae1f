#include "pairs.h"

/* ---- parts ---- */

static int is_heavier(const Part *a, const Part *b) {
    uint64_t x = a->time < 0 ? -(uint64_t)a->time : (uint64_t)a->time;
    uint64_t y = b->time < 0 ? -(uint64_t)b->time : (uint64_t)b->time;
    return x != y ? x > y : a->node < b->node;
}

static int is_earlier(const Part *a, const Part *b) { return a->node < b->node; }

/* Insert a part in order. The parts come nearly sorted, so the walk is short. */
static void insert(Part *parts, unsigned size, Part part, int (*comes_before)(const Part *, const Part *)) {
    while (size && comes_before(&part, &parts[size - 1])) {
        parts[size] = parts[size - 1];
        size--;
    }
    parts[size] = part;
}

static Part part_of(const Descendants *callees, uint32_t at) {
    return (Part){callees->items[at].node, at, callees->items[at].time};
}

/* The heaviest MAX_CALLEES_APART of LOCAL and the callees; the time of the others is added to *others. */
static void find_heaviest(Part *parts, const Descendants *callees, int64_t exclusive, int64_t *others) {
    unsigned size = 0;
    for (uint32_t at = 0; at <= callees->count; at++) {
        Part part = at ? part_of(callees, at - 1) : (Part){LOCAL, 0, exclusive};
        if (size == MAX_CALLEES_APART) {
            if (!is_heavier(&part, &parts[size - 1])) {
                *others = plus(*others, part.time);
                continue;
            }
            *others = plus(*others, parts[--size].time);
        }
        insert(parts, size++, part, is_heavier);
    }
}

unsigned pairs_find_parts(Part *parts, const Descendants *callees, int64_t exclusive) {
    unsigned size = 0;
    if (callees->count < MAX_CALLEES_APART) {
        parts[size++] = (Part){LOCAL, 0, exclusive};
        for (uint32_t at = 0; at < callees->count; at++) insert(parts, size++, part_of(callees, at), is_earlier);
        return size;
    }
    Part heaviest[MAX_CALLEES_APART];
    int64_t others = 0;
    find_heaviest(heaviest, callees, exclusive, &others);
    if (callees->count + 1 > MAX_CALLEES_APART) parts[size++] = (Part){OTHER, 0, others};
    for (unsigned at = 0; at < MAX_CALLEES_APART; at++) insert(parts, size++, heaviest[at], is_earlier);
    return size;
}

/* ---- pairs ---- */

/* Append a pair to a node's. Gives its position, -1 if the arena is full. */
static int64_t create(Tree *tree, Node *node, int32_t i, int32_t j) {
    uint32_t at = node->pair_count, capacity = node->pair_capacity ? node->pair_capacity * 2 : 2;
    if (at == node->pair_capacity) {
        if (!arena_enlarge(&tree->arena, (void **)&node->pairs, at * sizeof(Pair), capacity * sizeof(Pair))) return -1;
        node->pair_capacity = capacity;
    }
    Table *index = &tree->pair_index;
    if (!table_put(&tree->arena, index, (uint32_t)node->number, (uint32_t)i, (uint32_t)j, at + 1)) return -1;
    node->pairs[at] = (Pair){.i = i, .j = j};
    tree->pair_count++;
    return node->pair_count++;
}

/* As ensure, where the guess was wrong. */
static __attribute__((noinline)) Pair *find_or_create(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor,
                                                      unsigned *times) {
    int64_t at = (int64_t)table_get(&tree->pair_index, (uint32_t)node->number, (uint32_t)i, (uint32_t)j) - 1;
    int is_other = i == OTHER && j == OTHER;
    if (at < 0 && !is_other && tree->pair_count >= tree->limits.pairs) {
        *times = i == j ? 1 : 2;
        tree->pairs_left_out++;
        return find_or_create(tree, node, OTHER, OTHER, cursor, &(unsigned){1});
    }
    if (at < 0) at = create(tree, node, i, j);
    if (at < 0) return NULL;
    *cursor = (uint32_t)at + 1;
    return &node->pairs[at];
}

/* *cursor guesses the position, because the same callees come in the same order time and again. */
static inline Pair *ensure(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times) {
    *times = 1;
    if (j == LOCAL && i == LOCAL) {
        node->local.i = node->local.j = LOCAL; /* it exists from now on */
        return &node->local;
    }
    uint32_t at = *cursor;
    if (at >= node->pair_count || node->pairs[at].i != i || node->pairs[at].j != j)
        return find_or_create(tree, node, i, j, cursor, times);
    ++*cursor;
    return &node->pairs[at];
}

Pair *pairs_ensure(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times) {
    return ensure(tree, node, i, j, cursor, times);
}

int pairs_find(const Tree *tree, Node *node, int32_t callee) {
    uint32_t number = (uint32_t)node->number, local = (uint32_t)LOCAL, cross, own;
    cross = table_get(&tree->pair_index, number, local, (uint32_t)callee);
    own = table_get(&tree->pair_index, number, (uint32_t)callee, (uint32_t)callee);
    if (!cross || !own) return 0;
    node->repeated.cross_pair = cross - 1;
    node->repeated.callee_pair = own - 1;
    return 1;
}

/* ---- an invocation ---- */

/* The events of each part; OTHER has what the others leave of the whole. */
static void find_events(int64_t *events, const Part *parts, unsigned size, const Descendants *callees,
                        ExclusiveCost exclusive) {
    unsigned has_other = parts[0].node == OTHER;
    for (unsigned at = has_other; at < size; at++)
        events[at] = parts[at].node == LOCAL ? exclusive.events : callees->items[parts[at].callee].events;
    if (!has_other) return;
    events[0] = exclusive.events;
    for (uint32_t at = 0; at < callees->count; at++) events[0] = plus(events[0], callees->items[at].events);
    for (unsigned at = 1; at < size; at++) events[0] = minus(events[0], events[at]);
}

static inline void add(Pair *pair, int64_t time_i, int64_t time_j, int64_t events_i, int64_t events_j) {
    pair->time += product(time_i, time_j);
    pair->events += product(events_i, events_j);
}

/* Add every pair of many parts. */
static void add_many(Tree *tree, Node *node, const Descendants *callees, ExclusiveCost exclusive) {
    Part parts[MAX_PARTS];
    int64_t events[MAX_PARTS];
    unsigned size = pairs_find_parts(parts, callees, exclusive.time), times;
    uint32_t cursor = 0;
    find_events(events, parts, size, callees, exclusive);
    for (unsigned a = 0; a < size; a++)
        for (unsigned b = a; b < size; b++) {
            Pair *pair = ensure(tree, node, parts[a].node, parts[b].node, &cursor, &times);
            while (pair && times--) add(pair, parts[a].time, parts[b].time, events[a], events[b]);
        }
}

/* Add one callee whose pairs are the node's first, as they are if it has always been the same one. 0 if they are
 * not. */
static inline int add_first(Node *node, const Descendant *callee, ExclusiveCost exclusive) {
    if (node->pair_count < 2) return 0;
    Pair *cross = &node->pairs[0], *own = &node->pairs[1];
    if (cross->i != LOCAL || cross->j != callee->node || own->i != callee->node || own->j != callee->node) return 0;
    add(cross, exclusive.time, callee->time, exclusive.events, callee->events);
    add(own, callee->time, callee->time, callee->events, callee->events);
    return 1;
}

/* No callee or one, as most invocations have, needs no order. */
void pairs_add(Tree *tree, Node *node, const Descendants *callees, ExclusiveCost exclusive) {
    if (callees->count > 1) {
        add_many(tree, node, callees, exclusive);
        return;
    }
    uint32_t cursor = 0;
    unsigned times;
    add(ensure(tree, node, LOCAL, LOCAL, &cursor, &times), exclusive.time, exclusive.time, exclusive.events,
        exclusive.events);
    const Descendant *callee = callees->items;
    if (!callees->count || add_first(node, callee, exclusive)) return;
    Pair *cross = ensure(tree, node, LOCAL, callee->node, &cursor, &times);
    while (cross && times--) add(cross, exclusive.time, callee->time, exclusive.events, callee->events);
    Pair *own = ensure(tree, node, callee->node, callee->node, &cursor, &times);
    while (own && times--) add(own, callee->time, callee->time, callee->events, callee->events);
}
