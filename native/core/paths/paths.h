/* Durations by call path, for specifications (Brünink & Rosenblum, FSE'16, §3.2). Each node of the call tree is a call
 * path; of its invocations there are exponential histograms and batch sums of wall and CPU time, in observations of
 * their function that are closed by count and time.
 *
 * An observation is closed when it has MIN_CALLS calls, because nothing is reliably found in fewer, and has lasted
 * MIN_DURATION_NS, so that a function that is called a million times a second does not have a thousand observations.
 * Beyond MAX_OBSERVATIONS of a function, neighbours are merged and both bounds double. A remainder that is too small to
 * be an observation joins the last one.
 *
 * CPU time is kept from the first invocation of an observation on that was off the CPU; until then it equals the wall
 * time.
 *
 * Ownership: all of it lies in the tree's arena. If it takes more than its share, the function that had the least
 * exclusive time is dropped and counted. Threads: one at a time. Cost: 15 ns a call; 1 ns if it is not kept.
 */
#ifndef PERFLAW_PATHS_H
#define PERFLAW_PATHS_H

#include "pieces.h"

enum { MIN_CALLS = 1000, MIN_DURATION_NS = 1000000000 / 64, MAX_OBSERVATIONS = 64 };

/* Keep durations from now on, in at most `limit` bytes. clocks: 2 if CPU time is measured. 0 if there is no memory. */
int paths_begin(Tree *tree, uint32_t clocks, uint64_t limit);
/* Add a completed invocation. */
void paths_add(Tree *tree, const Invocation *completed);
/* Close the open observations: nothing else will come. */
void paths_finish(Tree *tree);

#endif
