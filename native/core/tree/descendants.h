/* The descendants that an open invocation has had so far: calls and costs of each node.
 *
 * A caller's deeper descendants may be a loan: items of somebody else's array, which has given what they are a number
 * (chains.h).
 *
 * Ownership: an Invocation holds the Descendants; its items lie in the arena and move as it grows. Threads: one at a
 * time. Cost: adding a call takes 2 ns if the order repeats (`guess`), else a scan of 16 items or a hash look-up.
 */
#ifndef PERFLAW_DESCENDANTS_H
#define PERFLAW_DESCENDANTS_H

#include "tree.h"

/* The position of a node, or count if it is not there. */
uint32_t descendants_position(Arena *arena, Descendants *all, int32_t node);
/* Make room for one more item. 0 if the arena is full. */
int descendants_grow(Arena *arena, Descendants *all);
/* The changes of an item; those of all items are made if there were none. NULL if the arena is full. */
Lane **descendants_changes(Arena *arena, Descendants *all, uint32_t at);

/* The slow way of descendants_item. */
Descendant *descendants_search(Arena *arena, Descendants *all, int32_t node, int32_t depth);
/* The item of a node, zero if it is new; NULL if the arena is full. */
static inline Descendant *descendants_item(Arena *arena, Descendants *all, int32_t node, int32_t depth) {
    if (all->guess < all->count && all->items[all->guess].node == node) return &all->items[all->guess++];
    return descendants_search(arena, all, node, depth);
}

/* Add calls and costs to the item of their node. Field by field, because a copy of what was just written in parts
 * would wait for the parts. */
static inline void descendants_add(Arena *arena, Descendants *all, const Descendant *more) {
    if (!all->count && all->capacity) {
        all->items[0] = *more;
        all->count = all->guess = 1;
        return;
    }
    Descendant *item = descendants_item(arena, all, more->node, more->depth);
    if (!item) return;
    item->calls += more->calls;
    item->time = (int64_t)((uint64_t)item->time + (uint64_t)more->time);
    item->events = (int64_t)((uint64_t)item->events + (uint64_t)more->events);
}

/* Have an empty one show items of somebody else's. Until descendants_copy_loan or descendants_clear they may be
 * read, and nothing may be added. */
static inline void descendants_lend(Descendants *all, Descendant *items, uint32_t count, uint64_t loan,
                                    uint64_t time_bits) {
    all->own_items = all->items;
    all->items = items;
    all->count = count;
    all->loan = loan;
    all->time_bits = time_bits;
}
/* Copy the items of a loan, because their owner needs the room. 0 if the arena is full. */
int descendants_copy_loan(Arena *arena, Descendants *all);

/* The slow way of descendants_clear. */
void descendants_reset(Arena *arena, Descendants *all);
/* Empty it for the next invocation. An array far larger than was needed goes back to the arena. */
static inline void descendants_clear(Arena *arena, Descendants *all) {
    if (!all->count) return;
    if (all->loan) {
        all->items = all->own_items;
        all->loan = all->time_bits = 0;
    } else if (all->indexed || all->changes || all->capacity > 64) descendants_reset(arena, all);
    all->count = all->guess = 0;
}

#endif
