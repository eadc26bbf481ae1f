/* What adds to the tree: the end of a segment (an invocation returns or yields), and of an invocation.
 * Ownership: the arena's. Threads: one at a time. Cost: nearly all that there is, see moments.h and reservoir.h. */
#ifndef PERFLAW_SEGMENTS_H
#define PERFLAW_SEGMENTS_H

#include "lanes.h"

/* Clock of a stack: it stands still while the stack is switched out. */
static inline int64_t segments_clock(const Stack *stack, int64_t stamp) { return since(stamp, stack->away); }

/* Give what passed since the top invocation was last (re)entered to it and to its caller, NULL for the root; that time. */
int64_t segments_close(Tree *tree, Stack *stack, Frame *top, Frame *caller, int64_t stamp);
/* Add a completed invocation to every moment it has a part in. stack: that it is the top of; NULL if it is set aside. */
void segments_record(Tree *tree, Stack *stack, Frame *done, Frame *caller);

#endif
