/* What an open invocation touched: calls and costs of each descendant node.
 *
 * Ownership: a Frame holds the bag; its items lie in the arena and move as it grows. Threads: one at a time.
 * Cost: a touch is about 2 ns where the order repeats (`next` guesses), else a scan of 16 or a hash look-up.
 */
#ifndef PERFLAW_BAG_H
#define PERFLAW_BAG_H

#include "layout.h"

/* Position of a node in the bag, or count where it is not in. */
uint32_t bag_seek(Arena *arena, Bag *bag, int32_t node);
/* Room for one more item. 0 if the arena is full. */
int bag_grow(Arena *arena, Bag *bag);
/* The changes beside an item, all made if there were none; NULL if the arena is full. */
Lane **bag_changes(Arena *arena, Bag *bag, uint32_t at);

/* What is known of a node, zero when new; NULL if the arena is full. */
Touch *bag_search(Arena *arena, Bag *bag, int32_t node, int32_t depth);
static inline Touch *bag_item(Arena *arena, Bag *bag, int32_t node, int32_t depth) {
    if (bag->next < bag->count && bag->items[bag->next].node == node) return &bag->items[bag->next++];
    return bag_search(arena, bag, node, depth);
}

/* Add to what is known of a node. Field by field: a copy of what was just written in parts would wait for the parts. */
static inline void bag_add(Arena *arena, Bag *bag, const Touch *touch) {
    if (!bag->count && bag->capacity) {
        bag->items[0] = *touch;
        bag->count = bag->next = 1;
        return;
    }
    Touch *item = bag_item(arena, bag, touch->node, touch->depth);
    if (!item) return;
    item->calls += touch->calls;
    item->time = (int64_t)((uint64_t)item->time + (uint64_t)touch->time);
    item->events = (int64_t)((uint64_t)item->events + (uint64_t)touch->events);
}

/* Let an empty bag show items of somebody else's, who has given what they are a number. Until bag_keep or bag_clear they
 * may be read, and nothing may be added. */
static inline void bag_lend(Bag *bag, Touch *items, uint32_t count, uint64_t number, uint64_t times) {
    bag->own = bag->items;
    bag->items = items;
    bag->count = count;
    bag->lent = number;
    bag->times = times;
}
/* Copy what is lent, for its owner needs the room. 0 if the arena is full. */
int bag_keep(Arena *arena, Bag *bag);

/* Empty it for the next invocation; a bag far larger than was needed goes back to the arena. */
void bag_empty(Arena *arena, Bag *bag);
static inline void bag_clear(Arena *arena, Bag *bag) {
    if (!bag->count) return;
    if (bag->lent) {
        bag->items = bag->own;
        bag->lent = bag->times = 0;
    } else if (bag->indexed || bag->changes || bag->capacity > 64) bag_empty(arena, bag);
    bag->count = bag->next = 0;
}

#endif
