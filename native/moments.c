#include "moments.h"

#include <string.h>

#include "grid.h"
#include "table.h"

typedef struct Part {
    int32_t node;
    int64_t cost;
} Part;

static Sum product(int64_t a, int64_t b) { return (Sum)((__int128)a * b); }
static Sum widened(int64_t a) { return (Sum)(__int128)a; }

/* ---- histogram ---- */

/* A window that holds the bucket too; whole powers of two, so that it seldom grows. */
static Window *widen(Arena *arena, Offset *histogram, unsigned bucket) {
    Window *old = *histogram ? arena_at(arena, *histogram) : NULL;
    uint32_t low = bucket / 4 * 4, high = low + 4;
    if (old && old->low < low) low = old->low;
    if (old && old->low + old->length > high) high = old->low + old->length;
    Offset block = arena_alloc(arena, sizeof(Window) + (high - low) * sizeof(uint64_t));
    if (!block) return NULL;
    Window *wider = arena_at(arena, block);
    *wider = (Window){.low = low, .length = high - low};
    if (old) memcpy(wider->counts + (old->low - low), old->counts, old->length * sizeof(uint64_t));
    Offset before = *histogram;
    arena_publish();
    *histogram = block;
    arena_publish();
    if (old) arena_free(arena, before, sizeof(Window) + old->length * sizeof(uint64_t));
    return wider;
}

static void count(Arena *arena, Offset *histogram, unsigned bucket) {
    Window *window = *histogram ? arena_at(arena, *histogram) : NULL;
    if (!window || bucket - window->low >= window->length) window = widen(arena, histogram, bucket);
    if (window) window->counts[bucket - window->low]++;
}

/* ---- pairs of touched children ---- */

static int heavier(const Part *a, const Part *b) {
    uint64_t x = a->cost < 0 ? -(uint64_t)a->cost : (uint64_t)a->cost;
    uint64_t y = b->cost < 0 ? -(uint64_t)b->cost : (uint64_t)b->cost;
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

/* The heaviest MAX_KIDS_APART of LOCAL and the kids; the cost of the others goes to *rest. */
static void heaviest(Part *parts, const Bag *kids, int64_t local, uint64_t *rest) {
    unsigned size = 0;
    for (uint32_t at = 0; at <= kids->count; at++) {
        Part part = at ? (Part){kids->items[at - 1].node, kids->items[at - 1].cost} : (Part){LOCAL, local};
        if (size == MAX_KIDS_APART) {
            if (!heavier(&part, &parts[size - 1])) {
                *rest += (uint64_t)part.cost;
                continue;
            }
            *rest += (uint64_t)parts[--size].cost;
        }
        insert(parts, size++, part, heavier);
    }
}

/* LOCAL, the kids and perhaps OTHER in order of their numbers; at most MAX_KIDS_APART + 1. */
static unsigned gather(Part *parts, const Bag *kids, int64_t local) {
    unsigned size = 0;
    if (kids->count < MAX_KIDS_APART) {
        parts[size++] = (Part){LOCAL, local};
        for (uint32_t at = 0; at < kids->count; at++)
            insert(parts, size++, (Part){kids->items[at].node, kids->items[at].cost}, earlier);
        return size;
    }
    Part kept[MAX_KIDS_APART];
    uint64_t rest = 0;
    heaviest(kept, kids, local, &rest);
    if (kids->count + 1 > MAX_KIDS_APART) parts[size++] = (Part){OTHER, (int64_t)rest};
    for (unsigned at = 0; at < MAX_KIDS_APART; at++) insert(parts, size++, kept[at], earlier);
    return size;
}

/* The pair (i, j) of a node. *cursor guesses: the same children come in the same order time and again. */
static Pair *pair_of(Arena *arena, Node *node, int32_t i, int32_t j, uint32_t *cursor) {
    Offset *row = &node->pairs;
    Pair *pairs = row_items(arena, *row);
    uint32_t at = *cursor, number = node->number;
    if (at >= row_count(arena, *row) || pairs[at].i != i || pairs[at].j != j) {
        Table *index = &arena->head->tree.pair_index;
        at = table_get(arena, index, number, (uint32_t)i, (uint32_t)j);
        int64_t pushed = at ? at : row_push(arena, row, &(Pair){.i = i, .j = j}, sizeof(Pair)) + 1;
        if (!at && (!pushed || !table_put(arena, index, number, (uint32_t)i, (uint32_t)j, (uint32_t)pushed))) return NULL;
        at = (uint32_t)pushed - 1;
    }
    *cursor = at + 1;
    return (Pair *)row_items(arena, *row) + at;
}

static void add_pairs(Arena *arena, Node *node, int64_t local, const Bag *kids) {
    Part parts[MAX_KIDS_APART + 1];
    unsigned size = gather(parts, kids, local);
    uint32_t cursor = 0;
    for (unsigned a = 0; a < size; a++)
        for (unsigned b = a; b < size; b++) {
            Sum yy = product(parts[a].cost, parts[b].cost);
            if (parts[a].node == LOCAL && parts[b].node == LOCAL) {
                node->local_seen = 1;
                node->local_xx += yy;
                continue;
            }
            Pair *pair = pair_of(arena, node, parts[a].node, parts[b].node, &cursor);
            if (!pair) return;
            pair->sum_yy += yy;
        }
}

/* ---- links to descendants ---- */

static Link *link_of(Arena *arena, Node *node, int32_t below, uint32_t *cursor) {
    Offset *row = &node->links;
    Link *links = row_items(arena, *row);
    uint32_t at = *cursor, number = node->number;
    if (at >= row_count(arena, *row) || links[at].node != below) {
        Table *index = &arena->head->tree.link_index;
        at = table_get(arena, index, number, (uint32_t)below, 0);
        int64_t pushed = at ? at : row_push(arena, row, &(Link){.node = below}, sizeof(Link)) + 1;
        if (!at && (!pushed || !table_put(arena, index, number, (uint32_t)below, 0, (uint32_t)pushed))) return NULL;
        at = (uint32_t)pushed - 1;
    }
    *cursor = at + 1;
    return (Link *)row_items(arena, *row) + at;
}

static void add_link(Link *link, const Touch *below, int64_t x) {
    uint64_t k = below->calls;
    link->n++;
    link->sum_y += widened(below->cost);
    link->sum_yy += product(below->cost, below->cost);
    link->sum_yx += product(below->cost, x);
    if (k == 1) return;
    link->n_more++;
    link->more_k += k - 1;
    link->more_kk += (Sum)k * k - 1;
    link->more_ky += ((Sum)k - 1) * widened(below->cost);
}

static void add_links(Arena *arena, Node *node, int64_t x, const Bag *below, uint32_t *cursor) {
    for (uint32_t at = 0; below && at < below->count; at++) {
        Link *link = link_of(arena, node, below->items[at].node, cursor);
        if (!link) return;
        add_link(link, &below->items[at], x);
    }
}

/* ---- the node itself ---- */

static void add_cost(Node *node, int64_t x) {
    if (!node->n || x < node->min_x) node->min_x = x;
    if (x > node->max_x) node->max_x = x;
    node->sum_x += widened(x);
    node->sum_xx += product(x, x);
}

int64_t moments_add(Arena *arena, Node *node, int64_t x, const Bag *kids, const Bag *deeper) {
    int64_t local = x;
    add_cost(node, x);
    count(arena, &node->histogram, log_bucket(x));
    if (kids && kids->count) {
        uint32_t cursor = 0;
        for (uint32_t at = 0; at < kids->count; at++)
            local = (int64_t)((uint64_t)local - (uint64_t)kids->items[at].cost);
        add_pairs(arena, node, local, kids);
        if (arena->head->tree.max_distance) {
            add_links(arena, node, x, kids, &cursor);
            add_links(arena, node, x, deeper, &cursor);
        }
    } else {
        node->local_seen = 1;
        node->local_xx += product(x, x);
    }
    arena_publish();
    node->n++;
    return local;
}

void moments_wait(Arena *arena, Node *node, int64_t waited) {
    if (!node->waits) node->waits = arena_alloc(arena, sizeof(Waits));
    if (!node->waits) return;
    Waits *waits = arena_at(arena, node->waits);
    if (!waits->n || waited < waits->least) waits->least = waited;
    if (!waits->n || waited > waits->most) waits->most = waited;
    waits->sum_w += widened(waited);
    waits->sum_ww += product(waited, waited);
    arena_publish();
    waits->n++;
}
