/* Call events to a call tree with exact moments: what record/tree/builder.py means, in C.
 *
 * The tree is keyed by (parent, call site, callee); from the third repetition of a (site, callee) on a path, recursion
 * is folded into the first. Sums are exact, so trees of threads and runs add in any order to the same result.
 *
 * Ownership: a Tree owns its arena. Threads: one caller at a time. Cost: `make bench`. Events that are nonsense do no
 * harm; when the arena is full, they are counted as lost and nothing else happens.
 */
#ifndef PERFLAW_CALLTREE_H
#define PERFLAW_CALLTREE_H

#include "layout.h"

/* Begin a tree in a new arena of at most memory bytes. max_distance: how far links reach, 0 for none. 0 or errno. */
int calltree_begin(Tree *tree, uint64_t seed, uint32_t max_distance, uint64_t memory);
void calltree_forget(Tree *tree);

/* Take the next event of a ring, whose source has a number of its own and is zero else. */
void calltree_feed(Tree *tree, Source *source, const Event *event);
/* No more events come from there: what is open on its stacks is counted so, and gives no sample. */
void calltree_end(Tree *tree, Source *source);
/* No more events come at all: what is suspended is counted as open. */
void calltree_finish(Tree *tree);

#endif
