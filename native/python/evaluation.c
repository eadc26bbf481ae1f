/* Events of Python 3.11: a frame evaluation function (PEP 523) around the interpreter's own. */
#include "event.h"

#if PY_VERSION_HEX < 0x030C0000

#include <opcode.h>

#include "stack.h"

const char *events_name(void) { return "frame evaluation (PEP 523)"; }

/* Whether a generator's frame has not run yet: it stands behind the instruction that made the generator. */
static int is_fresh(const Frame *frame) { return _Py_OPCODE(*frame->prev_instr) == RETURN_GENERATOR; }

/* How a frame left: a generator's stays with the generator while it is suspended. */
static int kind_of_leave(Frame *frame, int generator) {
    return generator && _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED ? EVENT_YIELD : EVENT_EXIT;
}

static PyObject *record(PyThreadState *state, Frame *frame, int throws, Thread *thread, Function *function) {
    Frame *caller = state->cframe->current_frame;
    if (!event_wanted(function, caller)) {
        thread->taken += recorder.costs.other_ns;
        return stack_evaluate(state, frame, throws, thread);
    }
    int generator = frame->owner == FRAME_OWNED_BY_GENERATOR, entered;
    int64_t now = clock_ns(&recorder.clock);
    if (generator && !is_fresh(frame)) entered = event_resume(thread, function, frame, caller, now);
    else entered = event_enter(thread, function, frame, caller, now);
    PyObject *result = stack_evaluate(state, frame, throws, thread);
    now = clock_ns(&recorder.clock);
    thread = current_thread; /* the child of a fork has no state yet, and the frame is its parent's */
    if (entered && thread && recorder.active) event_leave(thread, kind_of_leave(frame, generator), frame, now);
    return result;
}

static PyObject *evaluate(PyThreadState *state, Frame *frame, int throws) {
    Thread *thread = recorder.active ? thread_get() : NULL;
    if (!thread) return _PyEval_EvalFrameDefault(state, frame, throws);
    Function *function = function_of(frame);
    /* A call of a generator function only makes the generator, and is nobody's cost. */
    int makes = frame_is_generator(frame->f_code) && frame->owner != FRAME_OWNED_BY_GENERATOR;
    if (function && function->mode != SKIP && !makes) return record(state, frame, throws, thread, function);
    thread->taken += recorder.costs.other_ns;
    return stack_evaluate(state, frame, throws, thread);
}

int events_start(void) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
    return 1;
}

void events_stop(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault); }

#endif
