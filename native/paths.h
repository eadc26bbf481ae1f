/* Durations by call path, for specifications (Brünink & Rosenblum, FSE'16, §3.2): for each node of the call tree, which is
 * a call path, exponential histograms and batch sums of the wall and CPU times of its invocations, in observations of
 * their function that are closed by count and time.
 *
 * An observation is closed when it has FEWEST calls, for below that nothing is reliably found, and lasted SHORTEST_NS, so
 * that a function called a million times a second does not have a thousand. Beyond MOST_OBSERVATIONS of a function,
 * neighbours are put together and both bounds double. A remainder too small to be one joins the last.
 *
 * CPU time is kept from the first invocation of an observation on that was off the CPU: until then it is the wall's.
 *
 * Ownership: all of it lies in the tree's arena; where it takes more than its share, the function that had the least time
 * of its own is dropped and counted. Threads: one at a time. Cost: 15 ns a call; 1 ns where it is not asked for.
 */
#ifndef PERFLAW_PATHS_H
#define PERFLAW_PATHS_H

#include "pieces.h"

enum { FEWEST = 1000, SHORTEST_NS = 1000000000 / 64, MOST_OBSERVATIONS = 64 };

/* Collect from now on; clocks: 2 where CPU time is measured. 0 if there is no memory. */
int paths_begin(Tree *tree, uint32_t clocks, uint64_t limit);
/* Take in a completed invocation. */
void paths_add(Tree *tree, const Frame *done);
/* Close what is open: nothing else will come. */
void paths_finish(Tree *tree);

#endif
