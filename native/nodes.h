/* The nodes of the call tree: keyed by (parent, call site, callee), recursion folded.
 * Ownership: the arena's. Threads: as the arena. Cost: 2 ns where a node calls the same callee again, else a look-up. */
#ifndef PERFLAW_NODES_H
#define PERFLAW_NODES_H

#include "grid.h"

static inline Node *node_at(const Arena *arena, int32_t number) {
    return grid_at(arena, &arena->head->tree.nodes, (uint32_t)number);
}

/* The node for a call of code at site from parent, made if new; ROOT if the arena is full. */
int32_t nodes_child(Arena *arena, int32_t parent, int32_t site, int32_t code);

#endif
