#include "bag.h"

#include <string.h>

#include "lanes.h"

enum { FIRST = 4, SCANNED = 16 };

static uint64_t index_bytes(uint32_t capacity) { return capacity * 2 * sizeof(uint32_t); } /* half of it is used */

/* Let go of the index; it is made anew when a search is long. */
static void forget_index(Arena *arena, Bag *bag) {
    arena_free(arena, bag->index, index_bytes(bag->capacity));
    bag->index = NULL;
    bag->indexed = 0;
}

int bag_grow(Arena *arena, Bag *bag) {
    uint32_t capacity = bag->capacity ? bag->capacity * 2 : FIRST;
    uint64_t old = bag->capacity * sizeof(Touch), size = bag->capacity * sizeof(Lane *);
    if (bag->changes && !arena_enlarge(arena, (void **)&bag->changes, size, 2 * size)) return 0;
    if (!arena_enlarge(arena, (void **)&bag->items, old, capacity * sizeof(Touch))) return 0;
    forget_index(arena, bag);
    bag->capacity = capacity;
    return 1;
}

Lane **bag_changes(Arena *arena, Bag *bag, uint32_t at) {
    if (!bag->changes) bag->changes = arena_alloc(arena, bag->capacity * sizeof(Lane *));
    return bag->changes ? &bag->changes[at] : NULL;
}

/* The slot of a node, which holds its position + 1, or the empty one where it would go. */
static uint32_t *slot_of(const Bag *bag, int32_t node) {
    uint32_t mask = bag->capacity * 2 - 1, at = (uint32_t)node * 0x9E3779B1u;
    at ^= at >> 15;
    while (bag->index[at & mask] && bag->items[bag->index[at & mask] - 1].node != node) at++;
    return &bag->index[at & mask];
}

static uint32_t look_up(Arena *arena, Bag *bag, int32_t node) {
    if (!bag->index) bag->index = arena_alloc(arena, index_bytes(bag->capacity));
    if (!bag->index) return bag->count;
    for (; bag->indexed < bag->count; bag->indexed++) *slot_of(bag, bag->items[bag->indexed].node) = bag->indexed + 1;
    uint32_t slot = *slot_of(bag, node);
    return slot ? slot - 1 : bag->count;
}

uint32_t bag_seek(Arena *arena, Bag *bag, int32_t node) {
    if (bag->next && bag->items[bag->next - 1].node == node) return bag->next - 1; /* the same once more */
    if (bag->count > SCANNED) return look_up(arena, bag, node);
    uint32_t at = 0;
    while (at < bag->count && bag->items[at].node != node) at++;
    return at;
}

Touch *bag_search(Arena *arena, Bag *bag, int32_t node, int32_t depth) {
    uint32_t at = bag->count ? bag_seek(arena, bag, node) : 0;
    if (at == bag->capacity && !bag_grow(arena, bag)) return NULL;
    if (at == bag->count) bag->items[bag->count++] = (Touch){.node = node, .depth = depth};
    bag->next = at + 1;
    return &bag->items[at];
}

int bag_keep(Arena *arena, Bag *bag) {
    const Touch *items = bag->items;
    uint32_t count = bag->count;
    bag_clear(arena, bag);
    while (bag->capacity < count)
        if (!bag_grow(arena, bag)) return 0;
    memcpy(bag->items, items, count * sizeof(Touch));
    bag->count = count;
    return 1;
}

void bag_empty(Arena *arena, Bag *bag) {
    for (uint32_t at = 0; bag->changes && at < bag->count; at++) lane_clear(arena, &bag->changes[at]);
    arena_free(arena, bag->changes, bag->capacity * sizeof(Lane *));
    bag->changes = NULL;
    if (bag->capacity > 64 && bag->count * 8 < bag->capacity) {
        forget_index(arena, bag);
        arena_free(arena, bag->items, bag->capacity * sizeof(Touch));
        *bag = (Bag){0};
    } else if (bag->indexed) {
        memset(bag->index, 0, index_bytes(bag->capacity));
        bag->indexed = 0;
    }
}
