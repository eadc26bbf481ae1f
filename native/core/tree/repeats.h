/* Sums of invocations that repeat. As long as an invocation is like the one before it, its sums are kept in 64 bits;
 * when one differs, or before they overflow, they are settled: added to exact sums of 128 bits.
 *
 * A link has a run: consecutive invocations of the ancestor in which the descendant has as many calls and events as
 * before. A node has a batch: consecutive invocations that are like the node's last one.
 *
 * Exact sums of products have 128 bits, and an invocation with a callee has ten of them. If it has the same events as
 * the last one, and its callee too, the sums of events follow from how many such invocations there were; and all
 * products of its exclusive and its callee's time follow from three: X * X, Y * Y and Y * X. So a batch is six sums of
 * 64 bits, and the products with deeper descendants.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: what is here is seldom called.
 */
#ifndef PERFLAW_REPEATS_H
#define PERFLAW_REPEATS_H

#include "tree.h"

/* ---- runs of a link ---- */

/* End the run, if there is one, and begin that of the descendant. events: those of the ancestor. */
void repeats_begin_run(Tree *tree, Node *node, Link *link, const Descendant *descendant, int64_t events);
/* The sums of products have become large: settle them before the next product makes them overflow. */
void repeats_settle_products(Tree *tree, Node *node, Link *link);
/* Add the products of times that are negative, or of two seconds and more. */
void repeats_add_wide(Tree *tree, Node *node, const Link *link, int64_t time, int64_t x);
/* All that a link has, its run included. The node's batch must be settled. */
LinkTotals repeats_link_totals(const Node *node, uint32_t at);

/* ---- batches of a node ---- */

/* Settle the batch of a node's invocations without callees. */
void repeats_settle_leaves(Node *node);
/* Settle the batch of a node's invocations with a callee, in its sums and those of its links. The batch may go on. */
void repeats_settle_calls(Tree *tree, Node *node);
/* Settle the batches of all nodes. */
void repeats_settle(Tree *tree);

#endif
