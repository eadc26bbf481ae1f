/* Lines of Python 3.11: a trace function in C on the frames of counted code, in place around the evaluation of frames.
 *
 * All other frames run at full speed, because the interpreter calls a trace function only if the innermost cframe says
 * that it traces. Of lines that several blocks share, every instruction is told. What the program reads and sets of its
 * own trace function stays its own: while it has one, ours is not in place, and the run says that not all was counted.
 *
 * Ownership: see lines.h. Threads: the caller holds the GIL. Cost: calibrated as line_ns, for each line of counted
 * code, and as branch_ns, for each instruction of a line that several blocks share. */
#ifndef PERFLAW_PYTHON_LINES_TRACE_H
#define PERFLAW_PYTHON_LINES_TRACE_H

#include "lines.h"

#if PY_VERSION_HEX < 0x030C0000

/* What is set aside of the calling frame while another is evaluated. */
typedef struct SetAside {
    const Site *jump;       /* the jump that the caller's last instruction was */
    PyFrameObject *opcodes; /* its frame, if its instructions were told one by one */
} SetAside;

/* Around the evaluation of any frame: the caller's state is set aside, and the frame's lines are counted if its code
 * is. */
SetAside lines_trace_begin(PyThreadState *state, Frame *frame, int *counted);
void lines_trace_end(PyThreadState *state, SetAside aside, int counted);

/* For calibration: trace the lines of all frames, or stop that. 0 if the program has a trace function of its own. */
int lines_trace_begin_all(PyThreadState *state);
void lines_trace_end_all(PyThreadState *state);

#endif
#endif
