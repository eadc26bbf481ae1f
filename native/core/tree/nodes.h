/* The nodes of the call tree, which are keyed by (parent, call site, callee). Recursion is folded, and their number is
 * bounded.
 *
 * Functions of libraries have a bound of their own, so that the contexts of other functions are kept apart however large
 * a library is. From half of it on, a library function is folded into any call of itself in the same stretch of library
 * functions; from three quarters on, contexts are put together by the function below the innermost node that is no
 * library's; beyond it, by the function alone.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: 2 ns if a node calls the same callee again, else a look-up.
 */
#ifndef PERFLAW_NODES_H
#define PERFLAW_NODES_H

#include "tree.h"

static inline Node *node_at(const Tree *tree, int32_t number) { return grid_at(&tree->nodes, (uint32_t)number); }

/* The slow way of nodes_child. */
Node *nodes_find_child(Tree *tree, Node *parent, int32_t site, int32_t code);
/* The node for a call of function `code` at a site of a node, made if it is new; NULL if the arena is full. */
static inline Node *nodes_child(Tree *tree, Node *parent, int32_t site, int32_t code) {
    Node *last = parent->last_child;
    return last && last->code == code && last->site == site ? last : nodes_find_child(tree, parent, site, code);
}

/* The sums of a function, made if it is new; NULL if the arena is full. */
Function *nodes_function(Tree *tree, int32_t code);
/* The sums of a function below tree->functions.count; NULL if there is none of this number. */
static inline Function *function_at(const Tree *tree, uint32_t code) {
    return *(Function **)grid_at(&tree->functions, code);
}

#endif
