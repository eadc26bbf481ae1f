/* Branches of Python 3.11: a trace function in C sees every instruction of the invocations that are counted, and of no
 * other.
 *
 * The interpreter calls the trace function that the thread's state names. What the program reads and sets there stays
 * its own: ours is not in place while another frame runs, and an invocation under the program's own trace function is
 * not counted. At most one invocation of a thread is traced at a time: the innermost one.
 *
 * Ownership: see branches.h. Threads: the caller holds the GIL and passes its own thread. Cost: calibrated as
 * branch_ns, for each instruction of a counted invocation. */
#ifndef PERFLAW_PYTHON_BRANCHES_TRACE_H
#define PERFLAW_PYTHON_BRANCHES_TRACE_H

#include "branches.h"

#if PY_VERSION_HEX < 0x030C0000

/* Whether the frame that runs is being traced. */
int branches_trace_is_on(const PyThreadState *state);
/* Before another frame is evaluated. Gives the counters to go on with after it, NULL if there are none any more. */
Counting *branches_trace_pause(PyThreadState *state, Thread *thread);
void branches_trace_go_on(PyThreadState *state, Thread *thread, Counting *counting);
/* Around the evaluation of a frame. Gives its counters if it is counted, else NULL. */
Counting *branches_trace_begin(PyThreadState *state, Thread *thread, const Frame *frame);
void branches_trace_end(PyThreadState *state, Counting *counting);

/* For calibration: count instructions and do nothing else, until the call that gives how many there were. 0 if the
 * program has a trace function of its own. */
int branches_trace_begin_counting_only(PyThreadState *state);
int64_t branches_trace_end_counting_only(PyThreadState *state);

#endif
#endif
