/* Chains of calls: an invocation with one callee, which has one callee, and so on, as most of a deep stack is.
 *
 * What each of them has for descendants is what its callee has, and the callee. So that need not be copied from caller
 * to caller: the stack has one array by height, and each caller's deeper descendants are a loan of the part above it,
 * until it calls something else. A loan has a number. If an invocation finds the descendants that the node's last one
 * had (the number of the loan, calls and events), its links have been looked up and compared before: only the sums of
 * times are added to, four links at once, in a batch of the node's (repeats.h).
 *
 * Ownership: the stack owns the array. Threads: one at a time. Cost: see `make bench`, depth 50.
 */
#ifndef PERFLAW_CHAINS_H
#define PERFLAW_CHAINS_H

#include "tree.h"

/* Add an invocation that is like the node's last one, and lend its caller what it has. 0 if it is not; links_add
 * then has to add it. */
int chains_repeat(Tree *tree, const Stack *stack, const Invocation *completed, Invocation *caller);

/* An invocation that is not like the last one may begin a chain. Gives whether it does; then repeated.first_link is
 * to be set. */
int chains_begin(Tree *tree, const Invocation *completed, const Invocation *caller);
/* Lend the caller what an invocation has. 0 if that is not possible. */
int chains_lend(const Stack *stack, const Invocation *completed, Invocation *caller);

#endif
