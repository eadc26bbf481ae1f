/* Lines of Python 3.11. Counted frames run with our trace function in place; all others at full speed, for the interpreter
 * calls it only where the innermost cframe says that it traces. Of lines that several blocks share every instruction is
 * told. What the target reads and sets of its own trace function stays its own: where it has one, ours is not in place,
 * and the run says that not all was counted. */
#include "lines_trace.h"

#if PY_VERSION_HEX < 0x030C0000

#include "event.h"

/* The outcome of the jump before, now that it is known where it went. */
static void settle_jump(Thread *thread, Lines *lines, int32_t offset) {
    const Site *jump = thread->jump;
    thread->jump = NULL;
    if (jump && jump->wanted && (offset == jump->next || offset == jump->target)) lines_count_jump(lines, jump, offset != jump->next);
}

static void settle_in_invocation(Counting *counting, int32_t offset) {
    const Site *last = counting->last;
    if (last && (offset == last->next || offset == last->target)) branches_count(counting, last, offset != last->next);
    counting->last = branches_site(counting->function->branches, offset);
}

static void reach_line(Lines *lines, PyFrameObject *object, int all) {
    uint32_t at = (uint32_t)object->f_lineno - (uint32_t)lines->first;
    if (at >= (uint32_t)lines->span) return;
    lines->counts[at]++;
    object->f_trace_opcodes = all || (lines->until && lines->until[at]);
}

/* Behind the last jump of a line its instructions need not be told: a way back into the line begins with its LINE. */
static void reach_opcode(const Lines *lines, PyFrameObject *object, int32_t offset) {
    uint32_t at = (uint32_t)object->f_lineno - (uint32_t)lines->first;
    if (lines->until && at < (uint32_t)lines->span && offset >= lines->until[at]) object->f_trace_opcodes = 0;
}

static int trace(PyObject *self, PyFrameObject *object, int what, PyObject *argument) {
    (void)self, (void)argument;
    Lines *lines = lines_of_code(object->f_frame->f_code);
    Thread *thread = current_thread;
    if (!lines || !thread) return 0;
    Counting *counting = branches_wanted ? branches_of(object->f_frame) : NULL;
    if (what == PyTrace_LINE) {
        reach_line(lines, object, counting != NULL);
        thread->taken += recorder.costs.line_ns;
    }
    if (what == PyTrace_EXCEPTION) {
        thread->jump = NULL;
        if (counting) counting->last = NULL;
    } else if (what == PyTrace_OPCODE || thread->jump) {
        int32_t offset = _PyInterpreterFrame_LASTI(object->f_frame) * (int32_t)sizeof(_Py_CODEUNIT);
        settle_jump(thread, lines, offset);
        if (what != PyTrace_OPCODE) return 0;
        if (lines->branches) thread->jump = branches_site(lines->branches, offset);
        if (counting) settle_in_invocation(counting, offset);
        else reach_opcode(lines, object, offset);
        thread->taken += recorder.costs.branch_ns;
    }
    return 0;
}

static int is_counted(const Frame *frame) { return frame && lines_of_code(frame->f_code); }

static void lose(const Frame *frame) {
    lines_say("not all counted: the program traced itself (sys.settrace)");
    Counting *counting = branches_wanted && frame ? branches_of(frame) : NULL;
    if (counting) counting->lost = 1;
}

/* As the interpreter does it itself where the target sets a trace function; a trace or profile function that runs now is
 * left alone, for nothing is told of what it executes. */
static void put(PyThreadState *state, int counted) {
    if (state->tracing || (state->c_tracefunc && state->c_tracefunc != trace)) return;
    if (counted) state->c_tracefunc = trace;
    state->cframe->use_tracing = counted || state->c_profilefunc ? 255 : 0;
}

Aside follow_begin(PyThreadState *state, Frame *frame, int *counted) {
    const Frame *caller = state->cframe->current_frame;
    Thread *thread = current_thread;
    Aside aside = {thread ? thread->jump : NULL, NULL};
    if (thread) thread->jump = NULL;
    if (state->c_tracefunc != trace) {
        if (!state->tracing && is_counted(caller)) lose(caller);
    } else if (caller && caller->frame_obj && caller->frame_obj->f_trace_opcodes) {
        aside.opcodes = caller->frame_obj; /* it may be the target's to trace from here on */
        aside.opcodes->f_trace_opcodes = 0;
    }
    *counted = !state->tracing && is_counted(frame);
    if (*counted && state->c_tracefunc && state->c_tracefunc != trace) lose(frame);
    put(state, *counted);
    return aside;
}

void follow_end(PyThreadState *state, Aside aside, int counted) {
    if (counted && state->c_tracefunc != trace) lose(NULL);
    put(state, is_counted(state->cframe->current_frame));
    if (current_thread) current_thread->jump = aside.jump;
    if (aside.opcodes && state->c_tracefunc == trace) aside.opcodes->f_trace_opcodes = 1;
}

int64_t lines_calibrate(PyObject *loop, PyObject *called, PyObject *calls) {
    int64_t plain = calibrate_timed(loop, called, calls);
    PyThreadState *state = PyThreadState_Get();
    if (state->c_tracefunc || !thread_get()) return 0;
    lines_meet(function_of_code((PyCodeObject *)PyFunction_GET_CODE(loop)));
    state->c_tracefunc = trace;
    state->cframe->use_tracing = 255;
    int64_t traced = calibrate_timed(loop, called, calls);
    state->c_tracefunc = NULL;
    state->cframe->use_tracing = 0;
    return traced > plain ? (traced - plain) / (2 * PyTuple_GET_SIZE(calls)) : 0; /* each time round: two lines */
}

#endif
