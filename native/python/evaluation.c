/* Events of Python 3.11: a frame evaluation function (PEP 523) around the interpreter's own. */
#define NEED_OPCODE_TABLES /* defines _PyOpcode_Deopt, which the interpreter keeps to itself */
#include "event.h"

#if PY_VERSION_HEX < 0x030C0000

#include "branches_trace.h"
#include "lines_trace.h"
#include "stack.h"

const char *events_name(void) { return "frame evaluation (PEP 523)"; }

/* Whether a generator's frame has not run yet: it stands behind the instruction that made the generator. */
static int is_fresh(const Frame *frame) { return _Py_OPCODE(*frame->prev_instr) == RETURN_GENERATOR; }

/* How a frame left: a generator's stays with the generator while it is suspended. */
static int kind_of_leave(Frame *frame, int generator) {
    return generator && _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED ? EVENT_YIELD : EVENT_EXIT;
}

/* Everything before a frame is evaluated. Returns whether it is recorded; *thread is NULL where nothing is any more. */
static inline int enter(PyThreadState *state, Frame *frame, int throws, Thread **thread) {
    *thread = recorder.active ? thread_get() : NULL;
    if (!*thread) return 0;
    Function *function = function_of(frame);
    Frame *caller = state->cframe->current_frame;
    int generator = frame->owner == FRAME_OWNED_BY_GENERATOR;
    /* A call of a generator function only makes the generator, and is nobody's cost. */
    int makes = !generator && frame_is_generator(frame->f_code);
    if (!function || function->mode == SKIP || makes || !event_wanted(function, caller)) {
        (*thread)->taken += recorder.costs.other_ns;
        return 0;
    }
    int64_t now = clock_ns(&recorder.clock);
    if (generator && !is_fresh(frame)) return event_resume(*thread, function, frame, caller, now);
    return !throws && event_enter(*thread, function, frame, caller, now); /* closed before it ran: no call */
}

/* The same while the exception is pending that a generator is to raise: what we look up must not replace it. */
static int enter_by_throw(PyThreadState *state, Frame *frame, Thread **thread) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int entered = enter(state, frame, 1, thread);
    PyErr_Restore(type, value, trace);
    return entered;
}

/* The same where branches are counted: the caller's are not while this frame is evaluated. */
static PyObject *evaluate_counting(PyThreadState *state, Frame *frame, int throws, Thread *thread) {
    Counting *counting = thread ? branches_begin(state, thread, frame) : NULL;
    PyObject *result = thread ? stack_evaluate(state, frame, throws, thread) : _PyEval_EvalFrameDefault(state, frame, throws);
    if (counting) branches_end(state, counting);
    return result;
}

static PyObject *evaluate(PyThreadState *state, Frame *frame, int throws);

/* Evaluate a frame that a counted one called. */
static PyObject *evaluate_between(PyThreadState *state, Frame *frame, int throws) {
    Counting *caller = branches_pause(state, current_thread);
    PyObject *result = evaluate(state, frame, throws);
    if (caller && current_thread) branches_go_on(state, current_thread, caller);
    return result;
}

/* The same where lines are counted, and branches by the way. */
static PyObject *evaluate_following(PyThreadState *state, Frame *frame, int throws) {
    Thread *thread;
    int generator = frame->owner == FRAME_OWNED_BY_GENERATOR, counted;
    int entered = throws ? enter_by_throw(state, frame, &thread) : enter(state, frame, 0, &thread);
    Aside aside = follow_begin(state, frame, &counted);
    PyObject *result = thread ? stack_evaluate(state, frame, throws, thread) : _PyEval_EvalFrameDefault(state, frame, throws);
    int64_t now = clock_ns(&recorder.clock);
    thread = current_thread; /* as below */
    if (entered && thread && recorder.active) event_leave(thread, kind_of_leave(frame, generator), frame, now);
    follow_end(state, aside, counted);
    return result;
}

static PyObject *evaluate(PyThreadState *state, Frame *frame, int throws) {
    if (lines_wanted) return evaluate_following(state, frame, throws);
    if (branches_wanted && branches_are_traced(state)) return evaluate_between(state, frame, throws);
    Thread *thread;
    int generator = frame->owner == FRAME_OWNED_BY_GENERATOR;
    int entered = throws ? enter_by_throw(state, frame, &thread) : enter(state, frame, 0, &thread);
    PyObject *result;
    if (entered && branches_wanted) result = evaluate_counting(state, frame, throws, thread);
    else result = thread ? stack_evaluate(state, frame, throws, thread) : _PyEval_EvalFrameDefault(state, frame, throws);
    if (!entered) return result;
    int64_t now = clock_ns(&recorder.clock);
    thread = current_thread; /* the child of a fork has no state yet, and the frame is its parent's */
    if (thread && recorder.active) event_leave(thread, kind_of_leave(frame, generator), frame, now);
    return result;
}

int events_start(void) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
    return 1;
}

void events_stop(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault); }

#endif
