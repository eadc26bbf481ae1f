/* Links of an ancestor to its descendants, and how descendants become known to ancestors: from each invocation to its
 * caller.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: 48 bytes of a link for each descendant within max_distance.
 */
#ifndef PERFLAW_LINKS_H
#define PERFLAW_LINKS_H

#include "tree.h"

/* Add the descendants of a completed invocation to its links, and hand them on to its caller. caller: NULL for the
 * root, which needs to know nothing. stack: the one that the invocation is the top of; NULL if it is set aside. */
void links_add(Tree *tree, Stack *stack, const Invocation *completed, Invocation *caller);
/* The position of the link to a descendant among a node's, -1 if there is none. */
int64_t links_find(const Tree *tree, const Node *node, int32_t descendant);

#endif
