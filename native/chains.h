/* Chains of calls: an invocation with one kid, that with one kid, and so on, as most of a deep stack is.
 *
 * What each of them touched is what its kid touched, and the kid. So it need not be copied up from bag to bag: the stack
 * has one array by height, of which each caller's bag is lent the part above it, until it calls something else. What is
 * lent has a number. Where an invocation finds in its bags what the node's last one found, number, calls and events, its
 * links have been looked up and compared before: only the sums of times are added to, four links at once, in a batch of the
 * node's (repeats.h).
 *
 * Ownership: the stack owns the array. Threads: one at a time. Cost: see `make bench`, depth 50.
 */
#ifndef PERFLAW_CHAINS_H
#define PERFLAW_CHAINS_H

#include "layout.h"

/* Add an invocation that is as the node's last one, and lend its caller what it touched. 0: links_add is to do it. */
int chains_repeat(Tree *tree, const Stack *stack, const Frame *done, Frame *caller);

/* Another one follows. Whether there may be a chain; then last.first is to be set. */
int chains_begin(Tree *tree, const Frame *done, const Frame *caller);
/* Let the caller's bag see what it touched. 0 if it may not. */
int chains_lend(const Stack *stack, const Frame *done, Frame *caller);

#endif
