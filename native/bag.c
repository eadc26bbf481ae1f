#include "bag.h"

#include <string.h>

enum { FIRST = 4, SCANNED = 16 };

static uint64_t bytes(uint32_t capacity) {
    uint64_t index = capacity > SCANNED ? 2 * sizeof(uint32_t) : 0; /* twice as many slots as items */
    return sizeof(Bag) + capacity * (sizeof(Touch) + index);
}

static uint32_t *slot_of(const Bag *bag, int32_t node) {
    uint32_t *slots = (uint32_t *)(bag->items + bag->capacity), mask = bag->capacity * 2 - 1;
    uint32_t at = (uint32_t)node * 0x9E3779B1u;
    at ^= at >> 15;
    while (slots[at & mask] && bag->items[slots[at & mask] - 1].node != node) at++;
    return &slots[at & mask];
}

/* Position of the node, or count where it is not in. */
static uint32_t seek(const Bag *bag, int32_t node) {
    if (bag->capacity > SCANNED) {
        uint32_t slot = *slot_of(bag, node);
        return slot ? slot - 1 : bag->count;
    }
    uint32_t at = 0;
    while (at < bag->count && bag->items[at].node != node) at++;
    return at;
}

static Bag *grow(Arena *arena, Offset *bag) {
    Bag *old = bag_at(arena, *bag);
    uint32_t capacity = old ? old->capacity * 2 : FIRST;
    Offset block = arena_alloc(arena, bytes(capacity));
    if (!block) return NULL;
    Bag *larger = arena_at(arena, block);
    larger->capacity = capacity;
    if (old) {
        larger->count = old->count;
        memcpy(larger->items, old->items, old->count * sizeof(Touch));
        arena_free(arena, *bag, bytes(old->capacity));
    }
    for (uint32_t at = 0; capacity > SCANNED && at < larger->count; at++)
        *slot_of(larger, larger->items[at].node) = at + 1;
    *bag = block;
    return larger;
}

void bag_append(Arena *arena, Offset *bag, const Touch *touch) {
    Bag *held = bag_at(arena, *bag);
    if (!held || held->count == held->capacity) held = grow(arena, bag);
    if (!held) return;
    held->items[held->count++] = *touch;
    if (held->capacity > SCANNED) *slot_of(held, touch->node) = held->count;
}

void bag_search(Arena *arena, Offset *bag, const Touch *touch, uint32_t *cursor) {
    Bag *held = bag_at(arena, *bag);
    *cursor = held ? seek(held, touch->node) : 0;
    if (*cursor < bag_count(held)) {
        bag_add(arena, bag, touch, cursor);
        return;
    }
    bag_append(arena, bag, touch);
    ++*cursor;
}

void bag_empty(Arena *arena, Offset *bag) {
    Bag *held = bag_at(arena, *bag);
    if (held->capacity > SCANNED && held->count * 4 < held->capacity) {
        arena_free(arena, *bag, bytes(held->capacity));
        *bag = 0;
        return;
    }
    if (held->capacity > SCANNED) memset(held->items + held->capacity, 0, held->capacity * 2 * sizeof(uint32_t));
    held->count = 0;
}
