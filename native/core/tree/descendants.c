#include "descendants.h"

#include <string.h>

#include "lanes.h"

enum { FIRST_CAPACITY = 4, MAX_SCANNED = 16 };

static uint64_t index_bytes(uint32_t capacity) { return capacity * 2 * sizeof(uint32_t); } /* at most half of it is used */

/* Give the index back; it is made anew when a search is long. */
static void free_index(Arena *arena, Descendants *all) {
    arena_free(arena, all->index, index_bytes(all->capacity));
    all->index = NULL;
    all->indexed = 0;
}

int descendants_grow(Arena *arena, Descendants *all) {
    uint32_t capacity = all->capacity ? all->capacity * 2 : FIRST_CAPACITY;
    uint64_t old = all->capacity * sizeof(Descendant), size = all->capacity * sizeof(Lane *);
    if (all->changes && !arena_enlarge(arena, (void **)&all->changes, size, 2 * size)) return 0;
    if (!arena_enlarge(arena, (void **)&all->items, old, capacity * sizeof(Descendant))) return 0;
    free_index(arena, all);
    all->capacity = capacity;
    return 1;
}

Lane **descendants_changes(Arena *arena, Descendants *all, uint32_t at) {
    if (!all->changes) all->changes = arena_alloc(arena, all->capacity * sizeof(Lane *));
    return all->changes ? &all->changes[at] : NULL;
}

/* The index slot of a node, which holds its position + 1, or the empty one where it would go. */
static uint32_t *slot_of(const Descendants *all, int32_t node) {
    uint32_t mask = all->capacity * 2 - 1, at = (uint32_t)node * 0x9E3779B1u;
    at ^= at >> 15;
    while (all->index[at & mask] && all->items[all->index[at & mask] - 1].node != node) at++;
    return &all->index[at & mask];
}

static uint32_t look_up(Arena *arena, Descendants *all, int32_t node) {
    if (!all->index) all->index = arena_alloc(arena, index_bytes(all->capacity));
    if (!all->index) return all->count;
    for (; all->indexed < all->count; all->indexed++) *slot_of(all, all->items[all->indexed].node) = all->indexed + 1;
    uint32_t slot = *slot_of(all, node);
    return slot ? slot - 1 : all->count;
}

uint32_t descendants_position(Arena *arena, Descendants *all, int32_t node) {
    if (all->guess && all->items[all->guess - 1].node == node) return all->guess - 1; /* the same node again */
    if (all->count > MAX_SCANNED) return look_up(arena, all, node);
    uint32_t at = 0;
    while (at < all->count && all->items[at].node != node) at++;
    return at;
}

Descendant *descendants_search(Arena *arena, Descendants *all, int32_t node, int32_t depth) {
    uint32_t at = all->count ? descendants_position(arena, all, node) : 0;
    if (at == all->capacity && !descendants_grow(arena, all)) return NULL;
    if (at == all->count) all->items[all->count++] = (Descendant){.node = node, .depth = depth};
    all->guess = at + 1;
    return &all->items[at];
}

int descendants_copy_loan(Arena *arena, Descendants *all) {
    const Descendant *items = all->items;
    uint32_t count = all->count;
    descendants_clear(arena, all);
    while (all->capacity < count)
        if (!descendants_grow(arena, all)) return 0;
    memcpy(all->items, items, count * sizeof(Descendant));
    all->count = count;
    return 1;
}

void descendants_reset(Arena *arena, Descendants *all) {
    for (uint32_t at = 0; all->changes && at < all->count; at++) lane_clear(arena, &all->changes[at]);
    arena_free(arena, all->changes, all->capacity * sizeof(Lane *));
    all->changes = NULL;
    if (all->capacity > 64 && all->count * 8 < all->capacity) {
        free_index(arena, all);
        arena_free(arena, all->items, all->capacity * sizeof(Descendant));
        *all = (Descendants){0};
    } else if (all->indexed) {
        memset(all->index, 0, index_bytes(all->capacity));
        all->indexed = 0;
    }
}
