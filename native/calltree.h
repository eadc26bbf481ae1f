/* Call events to a call tree with exact moments: what collect/tree_builder.py means, in C.
 *
 * The tree is keyed by (parent, call site, callee); from the third repetition of a (site, callee) on a path, recursion
 * is folded into the first. Sums are exact, so trees of threads and runs add in any order to the same result.
 *
 * Ownership: the tree is the arena's only tenant (head->tree). Threads: one caller at a time (Python: who holds the
 * GIL; C programs: an arena per thread). Cost: see bench. Full disk: events are counted as lost, nothing else happens.
 */
#ifndef PERFLAW_CALLTREE_H
#define PERFLAW_CALLTREE_H

#include "arena.h"

/* Begin a tree in a new arena. max_distance: how far links reach, MAX_DISTANCE as a rule, 0 for none. 0 or errno. */
int calltree_begin(Arena *arena, uint64_t seed, uint32_t max_distance);
/* The thread of this number, begun if new; NULL if the arena is full. Valid as long as the arena: look it up once. */
Thread *calltree_thread(Arena *arena, int64_t number);

/* The next event of a thread. value: clock in ns, frame: identity of the frame. */
void calltree_enter(Arena *arena, Thread *thread, const Event *event);
void calltree_exit(Arena *arena, Thread *thread, int64_t stamp, int64_t frame);
void calltree_yield(Arena *arena, Thread *thread, int64_t stamp, int64_t frame);
void calltree_resume(Arena *arena, Thread *thread, const Event *event);
void calltree_feature(Arena *arena, Thread *thread, const Event *event);
void calltree_dead(Arena *arena, Thread *thread, int64_t frame);
/* Any of these, by kind. The door to use unless the caller looks at head->full itself: it refuses events from then on. */
void calltree_feed(Arena *arena, Thread *thread, const Event *event);

/* Count what is still open: such invocations give no sample. */
void calltree_finish(Arena *arena);

#endif
