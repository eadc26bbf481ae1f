/* Sums of invocations that repeat: while an invocation is as the one before it, its sums are kept in 64 bits; where one
 * differs, or before they overflow, they are settled into exact sums of 128 bits.
 *
 * A link has a run: one invocation of the ancestor after another in which the descendant had as many calls and events as in
 * the one before, see Link. A node has a batch: one invocation after another that is as the node's last one, see moments.h
 * and chains.h.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: what is here is seldom called.
 */
#ifndef PERFLAW_REPEATS_H
#define PERFLAW_REPEATS_H

#include "layout.h"

/* ---- runs of a link ---- */

/* End the run, if there is one, and begin that of the touch; events: the ancestor's. */
void repeats_begin_run(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events);
/* The sums of products have become large: move them on before the next product makes them overflow. */
void repeats_move_products(Tree *tree, Node *node, Link *link);
/* Add products of times that are negative or of two seconds and more. */
void repeats_add_wide(Tree *tree, Node *node, const Link *link, int64_t time, int64_t x);
/* All that a link has, of a node that is settled: exported sums are settled ones. */
Settled repeats_settled_link(const Node *node, uint32_t at);

/* ---- batches of a node ---- */

/* Move the batch of a node's invocations without kids to its sums. */
void repeats_settle_leaves(Node *node);
/* Move the batch of a node's invocations with a kid to its sums and those of its links. The same may go on. */
void repeats_settle_node(Tree *tree, Node *node);
/* Move the batches of all nodes to their sums. */
void repeats_settle(Tree *tree);

#endif
