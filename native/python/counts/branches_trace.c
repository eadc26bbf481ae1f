#include "branches_trace.h"

#if PY_VERSION_HEX < 0x030C0000

#include "python/greenlets.h"

/* Do what the interpreter does when a program sets a trace function. */
static void set_trace(PyThreadState *state, Py_tracefunc function) {
    state->c_tracefunc = function;
    state->cframe->use_tracing = !state->tracing && (function || state->c_profilefunc) ? 255 : 0;
}

static int trace(PyObject *self, PyFrameObject *object, int what, PyObject *argument) {
    (void)self, (void)argument;
    Thread *thread = current_thread;
    Counting *counting = thread ? thread->counting : NULL;
    if (!counting || object->f_frame != counting->frame) return 0;
    object->f_trace_opcodes = 1;
    if (what == PyTrace_EXCEPTION) counting->last = NULL;
    if (what != PyTrace_OPCODE) return 0;
    int32_t offset = _PyInterpreterFrame_LASTI(counting->frame) * (int32_t)sizeof(_Py_CODEUNIT);
    const Site *last = counting->last;
    if (last && (offset == last->next || offset == last->target)) counting_add(counting, last, offset != last->next);
    counting->last = branches_site(counting->function->branches, offset);
    thread->overhead_ns += recording.costs.branch_ns;
    counting->function->sampler->reading_ns += recording.costs.branch_ns;
    return 0;
}

int branches_trace_is_on(const PyThreadState *state) { return state->c_tracefunc == trace; }

void branches_trace_go_on(PyThreadState *state, Thread *thread, Counting *counting) {
    if (state->c_tracefunc) {
        counting->is_incomplete = 1; /* the program traces itself from here on */
        return;
    }
    thread->counting = counting;
    set_trace(state, trace);
    if (counting->frame->frame_obj) counting->frame->frame_obj->f_trace_opcodes = 1;
}

Counting *branches_trace_pause(PyThreadState *state, Thread *thread) {
    Counting *counting = thread ? thread->counting : NULL;
    set_trace(state, NULL);
    if (thread) thread->counting = NULL;
    if (counting && counting->frame->frame_obj) counting->frame->frame_obj->f_trace_opcodes = 0;
    return counting;
}

Counting *branches_trace_begin(PyThreadState *state, Thread *thread, const Frame *frame) {
    Counting *counting = counting_of(frame);
    if (!counting) return NULL;
    counting->last = NULL;
    if (state->tracing || state->c_tracefunc || greenlets_in_use) counting->is_incomplete = 1;
    if (counting->is_incomplete) return NULL;
    branches_trace_go_on(state, thread, counting);
    return counting;
}

void branches_trace_end(PyThreadState *state, Counting *counting) {
    Thread *thread = current_thread;
    int is_ours = branches_trace_is_on(state);
    if (!is_ours && thread && thread->counting == counting) counting->is_incomplete = 1;
    if (thread) thread->counting = NULL;
    if (is_ours) set_trace(state, NULL);
}

/* ---- for calibration ---- */

static int64_t instructions;

static int count_only(PyObject *self, PyFrameObject *object, int what, PyObject *argument) {
    (void)self, (void)argument;
    object->f_trace_opcodes = 1;
    instructions += what == PyTrace_OPCODE;
    return 0;
}

int branches_trace_begin_counting_only(PyThreadState *state) {
    if (state->c_tracefunc) return 0;
    set_trace(state, count_only);
    instructions = 0;
    return 1;
}

int64_t branches_trace_end_counting_only(PyThreadState *state) {
    set_trace(state, NULL);
    return instructions;
}

#endif
