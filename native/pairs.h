/* Pairs of parts of an invocation's cost: its own and its kids'. Of every node, the pairs add up to the sum of X * X.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: a pair of 48 bytes for each two parts.
 */
#ifndef PERFLAW_PAIRS_H
#define PERFLAW_PAIRS_H

#include "layout.h"

/* Add the pairs of a completed invocation, in time and events. */
void pairs_add(Tree *tree, Node *node, const Bag *kids, Own own);
/* Note the places of the pairs with a kid in the node's last: LOCAL's and its own. Whether both are there. */
int pairs_find(const Tree *tree, Node *node, int32_t kid);

/* ---- for lane_sums.c ---- */

/* The parts of an invocation's cost that are kept apart: LOCAL, kids and perhaps OTHER, in order of their numbers. */
typedef struct Part {
    int32_t node;
    uint32_t kid; /* its position in the bag */
    int64_t time;
} Part;
enum { MAX_PARTS = MAX_KIDS_APART + 1 };
unsigned pairs_gather(Part *parts, const Bag *kids, int64_t local);
/* The pair of two parts of a node, made if new. *times: how often its product counts, 2 where it stands for both orders
 * in (OTHER, OTHER) because no more pairs may be made. NULL if the arena is full. */
Pair *pairs_of(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times);

#endif
