/* The program may use any tool identifier of sys.monitoring (PEP 669), ours too: a function of sys.monitoring that is
 * called with our identifier finds it free, for the tracer has taken another one by then.
 *
 * The functions keep their identity; only the C function that each of them calls is another one meanwhile. Other
 * interpreters of the process have tools of their own and are left alone.
 *
 * Ownership: one guard per process. Threads: the caller holds the GIL. Cost: a comparison per call of sys.monitoring. */
#ifndef PERFLAW_PYTHON_TOOL_GUARD_H
#define PERFLAW_PYTHON_TOOL_GUARD_H

#include "python/interpreter/frames.h"

#if PY_VERSION_HEX >= 0x030C0000

/* Guard the functions of `monitoring`. Before one of them is called with the identifier that `tool` gives, `make_way`
 * is called, after which `tool` gives another one, or a negative number. */
void tool_guard_start(PyObject *monitoring, int (*tool)(void), void (*make_way)(void));
/* Let the program call the interpreter's own functions again. */
void tool_guard_stop(void);

#endif

#endif
