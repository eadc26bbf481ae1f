/* More C stack for deep recursion: with a frame evaluation function every Python call takes some of it (PEP 523), while
 * CPython 3.11 itself takes none. Where a thread's stack is nearly used up, evaluation goes on on another one. */
#ifndef PERFLAW_PYTHON_STACK_H
#define PERFLAW_PYTHON_STACK_H

#include "tracer.h"

enum { STACK_MARGIN = 192 << 10 };

#if PY_VERSION_HEX < 0x030C0000

/* Note the bounds of the stack that the calling thread began with. */
void stack_find_bounds(Thread *thread);
PyObject *stack_evaluate_on_more(PyThreadState *state, Frame *frame, int throws, Thread *thread);

/* Evaluate a frame, on a further stack if need be. */
static inline PyObject *stack_evaluate(PyThreadState *state, Frame *frame, int throws, Thread *thread) {
    const char *here = __builtin_frame_address(0);
    if (here - STACK_MARGIN < thread->floor) return stack_evaluate_on_more(state, frame, throws, thread);
    return _PyEval_EvalFrameDefault(state, frame, throws);
}

#else
static inline void stack_find_bounds(Thread *thread) { (void)thread; }
#endif

#endif
