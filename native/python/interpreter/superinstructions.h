/* The superinstructions of Python 3.12: pairs of loads and stores of local variables that are executed as one. The
 * interpreter takes them apart in all code that it instruments for a tool of sys.monitoring, and never puts them back:
 * a program that was recorded for a while would be some 2 % slower from then on.
 *
 * Ownership: the code object's. Threads: the caller holds the GIL. Cost: some nanoseconds an instruction. */
#ifndef PERFLAW_PYTHON_SUPERINSTRUCTIONS_H
#define PERFLAW_PYTHON_SUPERINSTRUCTIONS_H

#include "python/interpreter/frames.h"

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#define HAS_SUPERINSTRUCTIONS 1

/* Whether the code is instrumented for any tool. */
int code_is_instrumented(PyCodeObject *code);
/* Put the superinstructions back, as they were when the code was made; the code must not be instrumented. */
void superinstructions_restore(PyCodeObject *code);

#else
#define HAS_SUPERINSTRUCTIONS 0
#endif

#endif
