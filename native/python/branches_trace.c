/* Branches of Python 3.11: a trace function of C sees every instruction of the invocations that are counted, and of no
 * other. The interpreter calls it where the thread's state names it; what the target reads and sets there stays its own:
 * while another frame runs, ours is not in place, and an invocation under the target's own trace function is not counted. */
#include "branches_trace.h"

#if PY_VERSION_HEX < 0x030C0000

#include <stdlib.h>

#include "greenlets.h"

void events_watch(Function *function, int what) { (void)function, (void)what; }

/* As the interpreter does it itself where the target sets a trace function. */
static void put(PyThreadState *state, Py_tracefunc function) {
    state->c_tracefunc = function;
    state->cframe->use_tracing = !state->tracing && (function || state->c_profilefunc) ? 255 : 0;
}

static int count(PyObject *self, PyFrameObject *object, int what, PyObject *argument) {
    (void)self, (void)argument;
    Thread *thread = current_thread;
    Counting *counting = thread ? thread->counting : NULL;
    if (!counting || object->f_frame != counting->frame) return 0;
    object->f_trace_opcodes = 1;
    if (what == PyTrace_EXCEPTION) counting->last = NULL;
    if (what != PyTrace_OPCODE) return 0;
    int32_t offset = _PyInterpreterFrame_LASTI(counting->frame) * (int32_t)sizeof(_Py_CODEUNIT);
    const Site *last = counting->last;
    if (last && (offset == last->next || offset == last->target)) branches_count(counting, last, offset != last->next);
    counting->last = branches_site(counting->function->branches, offset);
    thread->taken += recorder.costs.branch_ns;
    counting->function->reading_ns += recorder.costs.branch_ns;
    return 0;
}

int branches_are_traced(const PyThreadState *state) { return state->c_tracefunc == count; }

void branches_go_on(PyThreadState *state, Thread *thread, Counting *counting) {
    if (state->c_tracefunc) {
        counting->lost = 1; /* the target traces by itself from here on */
        return;
    }
    thread->counting = counting;
    put(state, count);
    if (counting->frame->frame_obj) counting->frame->frame_obj->f_trace_opcodes = 1;
}

Counting *branches_pause(PyThreadState *state, Thread *thread) {
    Counting *counting = thread ? thread->counting : NULL;
    put(state, NULL);
    if (thread) thread->counting = NULL;
    if (counting && counting->frame->frame_obj) counting->frame->frame_obj->f_trace_opcodes = 0;
    return counting;
}

Counting *branches_begin(PyThreadState *state, Thread *thread, const Frame *frame) {
    Counting *counting = branches_of(frame);
    if (!counting) return NULL;
    counting->last = NULL;
    if (state->tracing || state->c_tracefunc || greenlets_in_use) counting->lost = 1;
    if (counting->lost) return NULL;
    branches_go_on(state, thread, counting);
    return counting;
}

void branches_end(PyThreadState *state, Counting *counting) {
    Thread *thread = current_thread;
    int ours = branches_are_traced(state);
    if (!ours && thread && thread->counting == counting) counting->lost = 1;
    if (thread) thread->counting = NULL;
    if (!ours) return;
    put(state, NULL);
}

/* ---- what an instruction costs ---- */

static int64_t instructions;

static int count_only(PyObject *self, PyFrameObject *object, int what, PyObject *argument) {
    (void)self, (void)argument;
    object->f_trace_opcodes = 1;
    instructions += what == PyTrace_OPCODE;
    return 0;
}

int64_t branches_calibrate(PyObject *loop, PyObject *called, PyObject *calls) {
    int64_t plain = calibrate_timed(loop, called, calls);
    PyThreadState *state = PyThreadState_Get();
    if (state->c_tracefunc) return 0;
    put(state, count_only);
    instructions = 0;
    int64_t traced = calibrate_timed(loop, called, calls);
    put(state, NULL);
    int64_t each = instructions / CALIBRATE_TRIALS;
    return traced > plain && each ? (traced - plain) / each : 0;
}

#endif
