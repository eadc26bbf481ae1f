/* Events of Python 3.11: a frame evaluation function (PEP 523) around the interpreter's own. */
#define NEED_OPCODE_TABLES /* defines _PyOpcode_Deopt, which the interpreter does not export */
#include "event_source.h"

#include "events.h"
#include "process.h"

#if PY_VERSION_HEX < 0x030C0000

#include "python/counts/branches_trace.h"
#include "python/counts/lines_trace.h"
#include "python/interpreter/stack.h"

/* Whether a generator's frame has not run yet: it is at the instruction that made the generator. */
static int is_fresh(const Frame *frame) { return _Py_OPCODE(*frame->prev_instr) == RETURN_GENERATOR; }

/* The kind of event by which a frame was left: a suspended generator keeps its frame. */
static int kind_of_leave(Frame *frame, int generator) {
    return generator && _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED ? EVENT_YIELD : EVENT_EXIT;
}

/* A recorded frame was left with this result. */
static inline void leave(Thread *thread, Frame *frame, int generator, PyObject *result, int64_t now) {
    int kind = kind_of_leave(frame, generator);
    event_leave(thread, kind, kind == EVENT_YIELD && result && event_hands(frame->f_code, result), frame, now);
}

/* What comes before the evaluation of a frame. Gives whether it is recorded; *thread is NULL if nothing is any more. */
static inline int enter(PyThreadState *state, Frame *frame, int throws, Thread **thread) {
    int is_new = !current_thread;
    *thread = recording.active ? thread_get() : NULL;
    if (!*thread) return 0;
    if (is_new && recording.settings.attached) event_open_earlier(*thread, state->cframe->current_frame);
    MeasuredEvent measured = measured_begin(*thread);
    Function *function = function_of(frame);
    Frame *caller = state->cframe->current_frame;
    int generator = frame->owner == FRAME_OWNED_BY_GENERATOR;
    /* The call of a generator function only makes the generator; it is no call of its own. */
    int makes_generator = !generator && frame_is_generator(frame->f_code);
    if (!function || function->mode == NEVER || makes_generator || !event_is_wanted(*thread, function)) {
        (*thread)->overhead_ns += recording.costs.other_ns;
        return 0;
    }
    if (budget_counts(*thread, function)) {
        event_count(*thread, function, caller);
        return 0;
    }
    int64_t now = clock_ns(&recording.clock);
    if (generator && !is_fresh(frame)) return event_resume(*thread, function, frame, caller, now, measured);
    /* a generator that is closed before it ran makes no call */
    return !throws && event_enter(*thread, function, frame, caller, now, measured);
}

/* As enter, while the exception is pending that a generator is to raise: what is looked up must not replace it. */
static int enter_by_throw(PyThreadState *state, Frame *frame, Thread **thread) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int entered = enter(state, frame, 1, thread);
    PyErr_Restore(type, value, trace);
    return entered;
}

/* Evaluate a recorded frame whose branches may be counted. */
static PyObject *evaluate_counting_branches(PyThreadState *state, Frame *frame, int throws, Thread *thread) {
    Counting *counting = thread ? branches_trace_begin(state, thread, frame) : NULL;
    PyObject *result = thread ? stack_evaluate(state, frame, throws, thread)
                              : _PyEval_EvalFrameDefault(state, frame, throws);
    if (counting) branches_trace_end(state, counting);
    return result;
}

static PyObject *evaluate(PyThreadState *state, Frame *frame, int throws);

/* Evaluate a frame that was called by one whose branches are counted; the caller is not traced meanwhile. */
static PyObject *evaluate_callee(PyThreadState *state, Frame *frame, int throws) {
    Counting *caller = branches_trace_pause(state, current_thread);
    PyObject *result = evaluate(state, frame, throws);
    if (caller && current_thread) branches_trace_go_on(state, current_thread, caller);
    return result;
}

/* Evaluate a frame where lines are counted, and perhaps branches. */
static PyObject *evaluate_counting_lines(PyThreadState *state, Frame *frame, int throws) {
    Thread *thread;
    int generator = frame->owner == FRAME_OWNED_BY_GENERATOR, counted;
    int entered = throws ? enter_by_throw(state, frame, &thread) : enter(state, frame, 0, &thread);
    SetAside aside = lines_trace_begin(state, frame, &counted);
    PyObject *result = thread ? stack_evaluate(state, frame, throws, thread)
                              : _PyEval_EvalFrameDefault(state, frame, throws);
    int64_t now = clock_ns(&recording.clock);
    thread = current_thread; /* as below */
    if (entered && thread && recording.active) leave(thread, frame, generator, result, now);
    lines_trace_end(state, aside, counted);
    return result;
}

static PyObject *evaluate(PyThreadState *state, Frame *frame, int throws) {
    if (lines_wanted) return evaluate_counting_lines(state, frame, throws);
    if (branches_wanted && branches_trace_is_on(state)) return evaluate_callee(state, frame, throws);
    Thread *thread;
    int generator = frame->owner == FRAME_OWNED_BY_GENERATOR;
    int entered = throws ? enter_by_throw(state, frame, &thread) : enter(state, frame, 0, &thread);
    PyObject *result;
    if (entered && branches_wanted) result = evaluate_counting_branches(state, frame, throws, thread);
    else result = thread ? stack_evaluate(state, frame, throws, thread) : _PyEval_EvalFrameDefault(state, frame, throws);
    if (!entered) return result;
    int64_t now = clock_ns(&recording.clock);
    thread = current_thread; /* a forked child has no state yet, and the frame is its parent's */
    if (thread && recording.active) leave(thread, frame, generator, result, now);
    return result;
}

#if PY_VERSION_HEX < 0x030B0400

/* Before 3.11.4 the interpreter evaluates calls of `__getitem__` itself where `x[i]` was specialised for it (CPython issue
 * 104405), and we do not hear of them. It specialises no `x[i]` for a function whose version takes more than 16 bits. */
static void prevent_specialised_item(PyFunctionObject *function) {
    static uint32_t version = 1u << 31; /* the interpreter counts its own from 1 on */
    if (function->func_version <= UINT16_MAX) function->func_version = version++;
}

/* The same for a namespace of a class. */
static void prevent_specialised_items(PyObject *names) {
    PyObject *found = names && PyDict_Check(names) ? PyDict_GetItemString(names, "__getitem__") : NULL;
    if (found && PyFunction_Check(found)) prevent_specialised_item((PyFunctionObject *)found);
}

/* The same for all classes that are there already. */
static void prevent_specialised_items_of_all(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *collector = PyImport_ImportModule("gc");
    PyObject *objects = collector ? PyObject_CallMethod(collector, "get_objects", NULL) : NULL;
    for (Py_ssize_t at = 0; objects && at < PyList_GET_SIZE(objects); at++) {
        PyObject *object = PyList_GET_ITEM(objects, at);
        if (PyType_Check(object)) prevent_specialised_items(((PyTypeObject *)object)->tp_dict);
    }
    Py_XDECREF(objects);
    Py_XDECREF(collector);
    PyErr_Restore(type, value, trace);
}

/* Evaluate a frame; if it is a class's body, the class's `__getitem__` is there behind it. A function that becomes one in another
 * way, by an assignment to a class or by `type(...)`, is known by its arguments when it is called first. */
static PyObject *evaluate_bodies(PyThreadState *state, Frame *frame, int throws) {
    if (frame->f_code->co_argcount == 2) prevent_specialised_item(frame->f_func);
    PyObject *names = frame->f_code->co_flags & CO_OPTIMIZED ? NULL : frame->f_locals;
    Py_XINCREF(names);
    PyObject *result = evaluate(state, frame, throws);
    if (result) prevent_specialised_items(names);
    Py_XDECREF(names);
    return result;
}

int events_start(void) {
    prevent_specialised_items_of_all();
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate_bodies);
    return 1;
}

#else

int events_start(void) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
    return 1;
}

#endif


void events_stop(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault); }

#endif
