/* Invocations that are as the node's last one: their sums are batched.
 *
 * Exact sums of products are of 128 bits, and an invocation with a kid has ten of them. Where it has the same events as the
 * last one, and what it called had the same, sums of events follow from how many there were. Of its own time and the kid's all
 * products follow from three: X * X, Y * Y and Y * X. So a batch is six sums of 64 bits, and the products with what is deeper,
 * which moments and links have to be settled with before anybody reads them; as a batch begins, or before it overflows.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: a leaf 10 instructions, else see chains.h.
 */
#ifndef PERFLAW_ALIKE_H
#define PERFLAW_ALIKE_H

#include "moments.h"

/* Add a completed invocation to the node's batch, and say what of it is its own. 0, and the node is settled, if it is not as
 * the last one was: then moments_add is to do it, and begins another batch. */
int alike_add(Tree *tree, Stack *stack, Frame *done, Frame *caller, Own *own);
/* Move the batch of a node's invocations with a kid to its sums. The same may go on. */
void alike_settle_last(Tree *tree, Node *node);
/* Move the batches of all nodes to their sums. */
void alike_settle(Tree *tree);

#endif
