/* Exact raw moments of one call-tree node (specs: Moments). Integers only; nothing is ever rounded.
 *
 * Ownership: all sums lie in the arena. Threads: one at a time. Cost of moments_repeat: 10 instructions for a leaf,
 * else see chains.h. Of moments_add: a leaf writes its node and one bucket; else a pair of 48 bytes for each two
 * callees, and 48 bytes of a link for each descendant within max_distance.
 */
#ifndef PERFLAW_MOMENTS_H
#define PERFLAW_MOMENTS_H

#include "tree.h"

/* Add a completed invocation to the node's batch (repeats.h), if it is like the last one; *exclusive is its
 * exclusive cost. 0 if it is not: the node is settled then, and moments_add has to add it, which begins another
 * batch. */
int moments_repeat(Tree *tree, Stack *stack, Invocation *completed, Invocation *caller, ExclusiveCost *exclusive);
/* Add a completed invocation, whatever it is like. The node's batches must be settled. caller: learns of the
 * descendants; NULL for the root, which needs to know nothing. stack: the one that the invocation is the top of;
 * NULL if it is set aside. */
ExclusiveCost moments_add(Tree *tree, Stack *stack, Invocation *completed, Invocation *caller);
/* Add a call without a time: an invocation without callees in events, and none in any other metric. */
void moments_count(Node *node);
/* Add how long a completed generator or coroutine was suspended. */
void moments_add_suspension(Tree *tree, Node *node, int64_t waited);

/* Count one in a bucket of a histogram (log_bucket). */
void histogram_count(Arena *arena, Histogram **histogram, unsigned bucket);

#endif
