/* What an open invocation touched: cost and calls of each descendant node.
 *
 * Ownership: an Invocation holds the offset; the bag grows, moves and is reused with it. Threads: as the arena.
 * Cost: a touch is about 2 ns where the order repeats (the cursor guesses), else a scan of 16 or a hash look-up.
 */
#ifndef PERFLAW_BAG_H
#define PERFLAW_BAG_H

#include "arena.h"

/* The bag, or NULL if nothing was ever put there. */
static inline Bag *bag_at(const Arena *arena, Offset bag) { return bag ? arena_at(arena, bag) : NULL; }
static inline uint32_t bag_count(const Bag *bag) { return bag ? bag->count : 0; }

/* Append a node that is not in yet, which nobody checks. Moves *bag. */
void bag_append(Arena *arena, Offset *bag, const Touch *touch);
/* Add to what is known of a node. *cursor is the guessed position: start a series at 0 and hand it on. Moves *bag. */
void bag_search(Arena *arena, Offset *bag, const Touch *touch, uint32_t *cursor);
static inline void bag_add(Arena *arena, Offset *bag, const Touch *touch, uint32_t *cursor) {
    Bag *held = bag_at(arena, *bag);
    if (!held || *cursor >= held->count || held->items[*cursor].node != touch->node) {
        bag_search(arena, bag, touch, cursor);
        return;
    }
    Touch *item = &held->items[(*cursor)++];
    item->cost = (int64_t)((uint64_t)item->cost + (uint64_t)touch->cost);
    item->calls += touch->calls;
}

/* Empty it for the next invocation; a bag far larger than was needed goes back to the arena. */
void bag_empty(Arena *arena, Offset *bag);
static inline void bag_clear(Arena *arena, Offset *bag) {
    if (bag_count(bag_at(arena, *bag))) bag_empty(arena, bag);
}

#endif
