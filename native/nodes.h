/* The nodes of the call tree: keyed by (parent, call site, callee), recursion folded, and bounded in number.
 * Ownership: the arena's. Threads: one at a time. Cost: 2 ns where a node calls the same callee again, else a look-up. */
#ifndef PERFLAW_NODES_H
#define PERFLAW_NODES_H

#include "layout.h"

static inline Node *node_at(const Tree *tree, int32_t number) { return grid_at(&tree->nodes, (uint32_t)number); }

/* The node for a call of code at site from a node, made if new; NULL if the arena is full. */
Node *nodes_seek(Tree *tree, Node *parent, int32_t site, int32_t code);
static inline Node *nodes_child(Tree *tree, Node *parent, int32_t site, int32_t code) {
    Node *hot = parent->hot_child;
    return hot && hot->code == code && hot->site == site ? hot : nodes_seek(tree, parent, site, code);
}

/* The sums of a function, made if new; NULL if the arena is full. */
Code *nodes_code(Tree *tree, int32_t code);

#endif
