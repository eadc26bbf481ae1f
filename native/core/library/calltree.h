/* Builds a call tree with exact moments from call events; record/tree/builder.py does the same in Python.
 *
 * The tree is keyed by (parent, call site, callee). From the third repetition of a (site, callee) on a path, recursion
 * is folded into the first one. Sums are exact, so trees of threads and runs add in any order to the same result.
 *
 * Ownership: a Tree owns its arena. Threads: one caller at a time. Cost: `make bench` measures it. Nonsensical events
 * do no harm; when the arena is full, events are counted as lost and nothing else happens.
 */
#ifndef PERFLAW_CALLTREE_H
#define PERFLAW_CALLTREE_H

#include "core/tree/tree.h"

/* Begin a tree in a new arena of at most `memory` bytes. max_distance: how far links reach, 0 for none. 0 or errno. */
int calltree_begin(Tree *tree, uint64_t seed, uint32_t max_distance, uint64_t memory);
void calltree_destroy(Tree *tree);

/* Add the next event of a ring. A new source is zero except for its number. */
void calltree_feed(Tree *tree, EventSource *source, const Event *event);
/* No more events come from this source: what is open on its stacks is counted as open, and gives no sample. */
void calltree_end(Tree *tree, EventSource *source);
/* No more events come at all: what is suspended is counted as open. */
void calltree_finish(Tree *tree);

#endif
