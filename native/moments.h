/* Exact raw moments of one call-tree node (specs: Moments). Integers only; nothing is ever rounded.
 *
 * Exact sums of products are of 128 bits, and an invocation with a kid has ten of them. Where it has the same events as the
 * last one, and what it called had the same, sums of events follow from how many there were. Of its own time and the kid's all
 * products follow from three: X * X, Y * Y and Y * X. So a batch is six sums of 64 bits, and the products with what is deeper,
 * which moments and links have to be settled with before anybody reads them; as a batch begins, or before it overflows.
 *
 * Ownership: all sums lie in the arena. Threads: one at a time. Cost of moments_repeat: a leaf 10 instructions, else see chains.h.
 * Of moments_add: a leaf writes its node and one bucket; else a 48-byte pair per two touched children and 48 bytes of a link per
 * descendant within max_distance.
 */
#ifndef PERFLAW_MOMENTS_H
#define PERFLAW_MOMENTS_H

#include "layout.h"

/* Add a completed invocation to the node's batch, and say what of it is its own. 0, and the node is settled, if it is not as
 * the last one was: then moments_add is to do it, and begins another batch. */
int moments_repeat(Tree *tree, Stack *stack, Frame *done, Frame *caller, Own *own);
/* Take in a completed invocation, whatever it is. caller: learns of what is below it; NULL for the root, which needs to know
 * nothing. stack: that it is the top of; NULL if it is set aside. The node's batches are to be settled. */
Own moments_add(Tree *tree, Stack *stack, Frame *done, Frame *caller);
/* Take in how long a completed generator or coroutine was suspended. */
void moments_wait(Tree *tree, Node *node, int64_t waited);

/* Count it in a histogram, whose bucket is log_bucket's. */
void moments_count(Arena *arena, Window **histogram, unsigned bucket);

#endif
