#include "pairs.h"

static int heavier(const Part *a, const Part *b) {
    uint64_t x = a->time < 0 ? -(uint64_t)a->time : (uint64_t)a->time;
    uint64_t y = b->time < 0 ? -(uint64_t)b->time : (uint64_t)b->time;
    return x != y ? x > y : a->node < b->node;
}

static int earlier(const Part *a, const Part *b) { return a->node < b->node; }

/* Put a part in its place; the series are nearly sorted, so the walk is short. */
static void insert(Part *parts, unsigned size, Part part, int (*before)(const Part *, const Part *)) {
    while (size && before(&part, &parts[size - 1])) {
        parts[size] = parts[size - 1];
        size--;
    }
    parts[size] = part;
}

static Part part_of(const Bag *kids, uint32_t kid) { return (Part){kids->items[kid].node, kid, kids->items[kid].time}; }

/* The heaviest MAX_KIDS_APART of LOCAL and the kids; the time of the others goes to *rest. */
static void heaviest(Part *parts, const Bag *kids, int64_t local, int64_t *rest) {
    unsigned size = 0;
    for (uint32_t at = 0; at <= kids->count; at++) {
        Part part = at ? part_of(kids, at - 1) : (Part){LOCAL, 0, local};
        if (size == MAX_KIDS_APART) {
            if (!heavier(&part, &parts[size - 1])) {
                *rest = plus(*rest, part.time);
                continue;
            }
            *rest = plus(*rest, parts[--size].time);
        }
        insert(parts, size++, part, heavier);
    }
}

unsigned pairs_gather(Part *parts, const Bag *kids, int64_t local) {
    unsigned size = 0;
    if (kids->count < MAX_KIDS_APART) {
        parts[size++] = (Part){LOCAL, 0, local};
        for (uint32_t at = 0; at < kids->count; at++) insert(parts, size++, part_of(kids, at), earlier);
        return size;
    }
    Part kept[MAX_KIDS_APART];
    int64_t rest = 0;
    heaviest(kept, kids, local, &rest);
    if (kids->count + 1 > MAX_KIDS_APART) parts[size++] = (Part){OTHER, 0, rest};
    for (unsigned at = 0; at < MAX_KIDS_APART; at++) insert(parts, size++, kept[at], earlier);
    return size;
}

/* A new pair at the end of a node's; the position, -1 if the arena is full. */
static int64_t made(Tree *tree, Node *node, int32_t i, int32_t j) {
    uint32_t at = node->pair_count, capacity = node->pair_capacity ? node->pair_capacity * 2 : 2;
    if (at == node->pair_capacity) {
        if (!arena_enlarge(&tree->arena, (void **)&node->pairs, at * sizeof(Pair), capacity * sizeof(Pair))) return -1;
        node->pair_capacity = capacity;
    }
    Table *index = &tree->pair_index;
    if (!table_put(&tree->arena, index, (uint32_t)node->number, (uint32_t)i, (uint32_t)j, at + 1)) return -1;
    node->pairs[at] = (Pair){.i = i, .j = j};
    tree->pairs++;
    return node->pair_count++;
}

/* As pair_of, where the guess was wrong. */
static __attribute__((noinline)) Pair *seek(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times) {
    int64_t at = (int64_t)table_get(&tree->pair_index, (uint32_t)node->number, (uint32_t)i, (uint32_t)j) - 1;
    int other = i == OTHER && j == OTHER;
    if (at < 0 && !other && tree->pairs >= tree->limits.pairs) {
        *times = i == j ? 1 : 2;
        tree->pairs_left_out++;
        return seek(tree, node, OTHER, OTHER, cursor, &(unsigned){1});
    }
    if (at < 0) at = made(tree, node, i, j);
    if (at < 0) return NULL;
    *cursor = (uint32_t)at + 1;
    return &node->pairs[at];
}

/* *cursor guesses: the same children come in the same order time and again. */
static inline Pair *pair_of(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times) {
    *times = 1;
    if (j == LOCAL && i == LOCAL) {
        node->local.i = node->local.j = LOCAL; /* it is there from now on */
        return &node->local;
    }
    uint32_t at = *cursor;
    if (at >= node->pair_count || node->pairs[at].i != i || node->pairs[at].j != j)
        return seek(tree, node, i, j, cursor, times);
    ++*cursor;
    return &node->pairs[at];
}

Pair *pairs_of(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times) {
    return pair_of(tree, node, i, j, cursor, times);
}

int pairs_find(const Tree *tree, Node *node, int32_t kid) {
    uint32_t number = (uint32_t)node->number, local = (uint32_t)LOCAL, cross, same;
    cross = table_get(&tree->pair_index, number, local, (uint32_t)kid);
    same = table_get(&tree->pair_index, number, (uint32_t)kid, (uint32_t)kid);
    if (!cross || !same) return 0;
    node->last.cross = cross - 1;
    node->last.same = same - 1;
    return 1;
}

/* Events of each part; OTHER has what the kept ones leave of the whole. */
static void events_of(int64_t *events, const Part *parts, unsigned size, const Bag *kids, Own own) {
    unsigned other = parts[0].node == OTHER;
    for (unsigned at = other; at < size; at++)
        events[at] = parts[at].node == LOCAL ? own.events : kids->items[parts[at].kid].events;
    if (!other) return;
    events[0] = own.events;
    for (uint32_t at = 0; at < kids->count; at++) events[0] = plus(events[0], kids->items[at].events);
    for (unsigned at = 1; at < size; at++) events[0] = since(events[0], events[at]);
}

static inline void add(Pair *pair, int64_t time_i, int64_t time_j, int64_t events_i, int64_t events_j) {
    pair->time += product(time_i, time_j);
    pair->events += product(events_i, events_j);
}

/* Every pair of many parts. */
static void add_many(Tree *tree, Node *node, const Bag *kids, Own own) {
    Part parts[MAX_PARTS];
    int64_t events[MAX_PARTS];
    unsigned size = pairs_gather(parts, kids, own.time), times;
    uint32_t cursor = 0;
    events_of(events, parts, size, kids, own);
    for (unsigned a = 0; a < size; a++)
        for (unsigned b = a; b < size; b++) {
            Pair *pair = pair_of(tree, node, parts[a].node, parts[b].node, &cursor, &times);
            while (pair && times--) add(pair, parts[a].time, parts[b].time, events[a], events[b]);
        }
}

/* One kid whose pairs are the node's first, as where it has always been the same one. 0 if they are not. */
static inline int add_usual(Node *node, const Touch *kid, Own own) {
    Pair *cross = &node->pairs[0], *same = &node->pairs[1];
    if (node->pair_count < 2 || cross->i != LOCAL || cross->j != kid->node || same->i != kid->node || same->j != kid->node)
        return 0;
    add(cross, own.time, kid->time, own.events, kid->events);
    add(same, kid->time, kid->time, kid->events, kid->events);
    return 1;
}

/* No kid or one, as most invocations have, needs no order. */
void pairs_add(Tree *tree, Node *node, const Bag *kids, Own own) {
    if (kids->count > 1) {
        add_many(tree, node, kids, own);
        return;
    }
    uint32_t cursor = 0;
    unsigned times;
    add(pair_of(tree, node, LOCAL, LOCAL, &cursor, &times), own.time, own.time, own.events, own.events);
    const Touch *kid = kids->items;
    if (!kids->count || add_usual(node, kid, own)) return;
    Pair *cross = pair_of(tree, node, LOCAL, kid->node, &cursor, &times);
    while (cross && times--) add(cross, own.time, kid->time, own.events, kid->events);
    Pair *same = pair_of(tree, node, kid->node, kid->node, &cursor, &times);
    while (same && times--) add(same, kid->time, kid->time, kid->events, kid->events);
}
