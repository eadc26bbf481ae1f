/* The invocations whose instructions are seen one by one, Python 3.11. At most one a thread at a time: the innermost. */
#ifndef PERFLAW_PYTHON_BRANCHES_TRACE_H
#define PERFLAW_PYTHON_BRANCHES_TRACE_H

#include "branches.h"

#if PY_VERSION_HEX < 0x030C0000

/* Whether the frame that is left for another one is being counted. */
int branches_are_traced(const PyThreadState *state);
/* Before another frame is evaluated: the counters to go on with after it, NULL where there are none any more. */
Counting *branches_pause(PyThreadState *state, Thread *thread);
void branches_go_on(PyThreadState *state, Thread *thread, Counting *counting);
/* Around the evaluation of a frame: its counters if it is counted, else NULL. */
Counting *branches_begin(PyThreadState *state, Thread *thread, const Frame *frame);
void branches_end(PyThreadState *state, Counting *counting);

#endif
#endif
