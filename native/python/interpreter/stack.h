/* More C stack for deep recursion. With a frame evaluation function (PEP 523) every Python call takes some C stack,
 * while CPython 3.11 itself takes none. If a thread's stack is nearly used up, evaluation goes on on another one.
 *
 * Ownership: a further stack lives as long as the frame that is evaluated on it. Threads: the caller passes its own
 * thread. Cost: a comparison per frame; a further stack is a mapping of 256 MB of address space. */
#ifndef PERFLAW_PYTHON_STACK_H
#define PERFLAW_PYTHON_STACK_H

#include "python/recording.h"

enum { STACK_MARGIN = 192 << 10 }; /* bytes that are kept free at the end of a stack */

#if PY_VERSION_HEX < 0x030C0000

/* Note the bounds of the stack that the calling thread began with. */
void stack_find_bounds(Thread *thread);
/* The slow way of stack_evaluate. */
PyObject *stack_evaluate_near_end(PyThreadState *state, Frame *frame, int throws, Thread *thread);

/* Evaluate a frame, on a further stack if this one is nearly used up. */
static inline PyObject *stack_evaluate(PyThreadState *state, Frame *frame, int throws, Thread *thread) {
    const char *here = __builtin_frame_address(0);
    if (here - STACK_MARGIN < thread->stack_low) return stack_evaluate_near_end(state, frame, throws, thread);
    return _PyEval_EvalFrameDefault(state, frame, throws);
}

#else
static inline void stack_find_bounds(Thread *thread) { (void)thread; }
#endif

#endif
