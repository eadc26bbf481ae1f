/* Links of an ancestor to what was called below it, and how that gets there: from bag to bag, one caller at a time.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: 48 bytes of a link for each descendant within max_distance.
 */
#ifndef PERFLAW_LINKS_H
#define PERFLAW_LINKS_H

#include "layout.h"

/* Add what a completed invocation touched to its links, and hand it on to its caller; see moments_add. */
void links_add(Tree *tree, Stack *stack, const Frame *done, Frame *caller);
/* Position of the link to a descendant among a node's, -1 if there is none. */
int64_t links_find(const Tree *tree, const Node *node, int32_t below);

#endif
