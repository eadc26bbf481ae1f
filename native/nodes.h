/* The nodes of the call tree: keyed by (parent, call site, callee), recursion folded.
 * Ownership: the arena's. Threads: as the arena. Cost: 2 ns where a node calls the same callee again, else a look-up. */
#ifndef PERFLAW_NODES_H
#define PERFLAW_NODES_H

#include "grid.h"

static inline Node *node_at(const Arena *arena, int32_t number) {
    return grid_at(arena, &arena->head->tree.nodes, (uint32_t)number);
}

/* The node for a call of code at site from a node, made if new; NULL if the arena is full. */
Node *nodes_seek(Arena *arena, Node *parent, int32_t site, int32_t code);
static inline Node *nodes_child(Arena *arena, Node *parent, int32_t site, int32_t code) {
    Node *hot = arena_at(arena, parent->hot_child);
    return parent->hot_child && hot->code == code && hot->site == site ? hot : nodes_seek(arena, parent, site, code);
}

#endif
