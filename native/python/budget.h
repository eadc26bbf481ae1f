/* Which functions are counted and not timed, so that the program takes no more than its budget.
 *
 * The tracer knows how much of the time it takes itself. As long as that is more than the budget allows, functions of
 * libraries are counted from now on if timing a call costs more than the budget allows of the call's own time. These are
 * tiny functions that call nothing recorded: what they take is then a part of their caller's own time, and the tree
 * keeps its shape. Calls are looked at among the events that are measured (costs.h).
 *
 * Of a function that is counted, one call in some sixty is timed all the same. The time of the others is estimated from
 * these after the run, and a function that turns out to take longer by now, or to call others, is timed again.
 *
 * Ownership: the function's and the thread's. Threads: the caller holds the GIL and passes its own thread. Cost: a test
 * an event; some additions at one call in sixty. */
#ifndef PERFLAW_PYTHON_BUDGET_H
#define PERFLAW_PYTHON_BUDGET_H

#include "recording.h"

/* Whether functions may be counted at all: what else is collected needs every call. */
int budget_is_kept(void);

/* Draw how many calls of a function are counted before the next is timed. */
void budget_draw(Thread *thread, Function *function);
/* Whether a call is counted and not timed. */
static inline int budget_counts(Thread *thread, Function *function) {
    if (function->mode != COUNTED || function->process != recording.process) return 0;
    if (__builtin_expect(--function->until_timed > 0, 1)) return 1;
    budget_draw(thread, function);
    return 0;
}

/* Look at a call that has just begun. */
static inline void budget_watch(Thread *thread, Function *function, const Frame *frame, int64_t stamp) {
    if (!function->may_be_counted) return;
    thread->watched = function;
    thread->watched_frame = frame;
    thread->watched_stamp = stamp;
}

/* The next event of a thread that looks at a call: the call's end, or another call (frame: NULL). */
void budget_end_watch(Thread *thread, const Frame *frame, int64_t stamp);

static inline void budget_next_event(Thread *thread, const Frame *frame, int64_t stamp) {
    if (__builtin_expect(thread->watched != NULL, 0)) budget_end_watch(thread, frame, stamp);
}

/* A forked child decides on its own which functions are counted. */
static inline void budget_forget(Function *function) {
    function->leaf_calls = 0;
    function->leaf_ns = 0;
    if (function->mode == COUNTED) function->mode = ALWAYS;
}

/* A call came from a function that is not the innermost open one. If that one is counted, it is timed from now on. */
void budget_called_from(Function *caller);

#endif
