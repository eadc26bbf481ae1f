/* What a completed invocation adds in lanes that few calls have something of: the same sums as in time, and in CPU time
 * only the difference to those in time.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: that of the sums in time again for each such lane.
 */
#ifndef PERFLAW_LANE_SUMS_H
#define PERFLAW_LANE_SUMS_H

#include "tree.h"

/* Add a completed invocation that has changes. This comes after the sums in time, whose pairs and links it finds
 * again. caller: NULL for the root. */
void lane_sums_add(Tree *tree, Invocation *completed, Invocation *caller);

#endif
