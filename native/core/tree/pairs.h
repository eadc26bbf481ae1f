/* Pairs of the parts of an invocation's cost: its exclusive cost and those of its callees. The pairs of a node add up
 * to the sum of X * X.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: a pair of 48 bytes for each two parts.
 */
#ifndef PERFLAW_PAIRS_H
#define PERFLAW_PAIRS_H

#include "tree.h"

/* Add the pairs of a completed invocation, in time and events. */
void pairs_add(Tree *tree, Node *node, const Descendants *callees, ExclusiveCost exclusive);
/* Note the indices of the two pairs with a callee in the node's repeated call. 0 if one of them does not exist. */
int pairs_find(const Tree *tree, Node *node, int32_t callee);

/* ---- for lane_sums.c ---- */

/* A part of an invocation's cost that is kept apart: LOCAL, a callee, or OTHER, which is all the lighter callees. */
typedef struct Part {
    int32_t node;
    uint32_t callee; /* its position among the callees */
    int64_t time;
} Part;
enum { MAX_PARTS = MAX_CALLEES_APART + 1 };
/* Find the parts, in the order of their numbers. Gives how many they are. */
unsigned pairs_find_parts(Part *parts, const Descendants *callees, int64_t exclusive);
/* The pair of two parts, which is made if it is new; NULL if the arena is full. *cursor guesses its position.
 * *times: how often its product counts, which is 2 for one that stands for both orders in (OTHER, OTHER) because no
 * more pairs may be made. */
Pair *pairs_ensure(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times);

#endif
