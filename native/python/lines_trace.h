/* Lines of Python 3.11: a trace function of C on the frames of counted code, in place beside the evaluation of frames. */
#ifndef PERFLAW_PYTHON_LINES_TRACE_H
#define PERFLAW_PYTHON_LINES_TRACE_H

#include "lines_count.h"

#if PY_VERSION_HEX < 0x030C0000

/* What is put aside of the calling frame while another is evaluated. */
typedef struct Aside {
    const Site *jump;        /* the instruction it stands at was this jump */
    PyFrameObject *opcodes;  /* its frame, if its instructions were told one by one */
} Aside;

/* Around the evaluation of any frame: the caller's lines are put aside, the frame's are counted if its code is. */
Aside follow_begin(PyThreadState *state, Frame *frame, int *counted);
void follow_end(PyThreadState *state, Aside aside, int counted);

#endif
#endif
