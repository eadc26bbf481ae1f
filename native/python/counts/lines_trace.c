#include "lines_trace.h"

#if PY_VERSION_HEX < 0x030C0000

#include "branches.h"
#include "python/functions.h"

/* What an event at an instruction tells; `other` is lent for what no event of a line tells. */
static const LineEvent *told_at(const Lines *lines, int what, int32_t offset, LineEvent *other) {
    const Points *points = lines->points;
    int unit = offset / (int32_t)sizeof(_Py_CODEUNIT);
    int is_inside = points && unit >= 0 && unit < points->units;
    if (is_inside && what == PyTrace_LINE && points_in_use) return &points->event[unit];
    other->block = is_inside ? points->head[unit] : offset;
    other->ending = is_inside && points_in_use ? points->ending[unit] : 0;
    other->is_behind = other->by_opcode = 0;
    other->is_entry = is_inside && what == PyTrace_LINE && offset == other->block;
    return other;
}

/* Whether the frame has not come to the jump yet: it is still in the block that the jump ends, or in one before it. */
static int is_before(const Lines *lines, const LineEvent *told, const Site *jump) {
    return told->ending && !told->is_entry && jump == &lines->branches->site[told->ending - 1];
}

/* Count the outcome of the jump before, now that it is known where it went. */
static void count_last_jump(Thread *thread, Lines *lines, const LineEvent *told) {
    const Site *jump = thread->jump;
    const Branches *branches = lines->branches;
    int is_ours = branches && jump >= branches->site && jump < branches->site + branches->sites;
    if (is_ours && is_before(lines, told, jump)) return;
    thread->jump = NULL;
    if (!is_ours) return; /* of another greenlet's frame */
    if (!jump->wanted) return;
    enum Silent silent = lines->points && points_in_use ? lines->points->silent[jump - lines->branches->site] : NONE_SILENT;
    if (told->block == jump->next || told->block == jump->target) lines_count_jump(lines, jump, told->block != jump->next);
    else if (silent) lines_count_jump(lines, jump, silent == TARGET_SILENT);
}

static void count_in_invocation(Counting *counting, int32_t offset) {
    const Site *last = counting->last;
    if (last && (offset == last->next || offset == last->target)) counting_add(counting, last, offset != last->next);
    counting->last = branches_site(counting->function->branches, offset);
}

static void add_counting(Thread *thread, int64_t ns) {
    thread->overhead_ns += ns;
    thread->counting_ns += ns;
}

/* What a line costs: its event, and the instructions from here on, which the interpreter looks at one by one. */
static int64_t cost_ns(const Lines *lines, const PyFrameObject *object) {
    int at = _PyInterpreterFrame_LASTI(object->f_frame);
    int64_t instructions = lines->ahead && at >= 0 && at < lines->units ? lines->ahead[at] : 0;
    return recording.costs.line_ns + (instructions * recording.costs.instruction_fraction_ns >> 8);
}

/* The frame comes to a line. all: have each of its instructions told, for the counters of the invocation. */
static void reach_line(Lines *lines, PyFrameObject *object, int all) {
    uint32_t at = (uint32_t)object->f_lineno - (uint32_t)lines->first;
    if (at >= (uint32_t)lines->span) return;
    lines->counts[at]++;
    int by_points = lines->points && points_in_use && lines->points->of_line[at];
    object->f_trace_opcodes = all || (lines->until && lines->until[at] && !by_points);
}

/* The frame comes to an instruction. Behind the last jump of a line its instructions need not be told, because
 * whatever leads back into the line begins with an event of the line. */
static void reach_opcode(const Lines *lines, PyFrameObject *object, int32_t offset) {
    uint32_t at = (uint32_t)object->f_lineno - (uint32_t)lines->first;
    if (lines->until && at < (uint32_t)lines->span && offset >= lines->until[at]) object->f_trace_opcodes = 0;
}

/* An instruction that has lost its line raises: give the traceback the line, and remember it for what handles this. */
static void mend_raise(Thread *thread, const Lines *lines, PyObject *exception, int unit) {
    const Points *points = lines->points;
    if (!points || !points_in_use || unit < 0 || unit >= points->units || !points->chosen[unit]) return;
    thread->raised_line = points->line[unit];
    thread->raised_offset = unit * (int32_t)sizeof(_Py_CODEUNIT);
    if (!exception || !PyTuple_Check(exception) || PyTuple_GET_SIZE(exception) != 3) return;
    PyObject *traceback = PyTuple_GET_ITEM(exception, 2);
    if (!PyTraceBack_Check(traceback)) return;
    PyTracebackObject *last = (PyTracebackObject *)traceback;
    if (last->tb_lineno == -1) last->tb_lineno = points->line[unit];
}

/* The event of a line of code with points: nearly all events of such code, which have to be quick. */
static void reach_told(Thread *thread, Lines *lines, PyFrameObject *object, const LineEvent *told) {
    uint32_t at = (uint32_t)object->f_lineno - (uint32_t)lines->first;
    if (!told->is_behind && at < (uint32_t)lines->span) {
        lines->counts[at]++;
        object->f_trace_opcodes = (char)told->by_opcode;
    }
    if (thread->jump) count_last_jump(thread, lines, told);
    if (told->ending) thread->jump = &lines->branches->site[told->ending - 1];
}

static int trace(PyObject *self, PyFrameObject *object, int what, PyObject *argument) {
    (void)self;
    Lines *lines = function_lines(object->f_frame->f_code);
    Thread *thread = current_thread;
    if (!lines || !thread) return 0;
    if (what == PyTrace_LINE && !lines->branches && !branches_wanted && !thread->jump) { /* most code is such */
        reach_line(lines, object, 0);
        add_counting(thread, cost_ns(lines, object));
        return 0;
    }
    int unit = _PyInterpreterFrame_LASTI(object->f_frame);
    const Points *points = lines->points;
    int is_told = what == PyTrace_LINE && points && points_in_use && (uint32_t)unit < (uint32_t)points->units;
    if (is_told && !branches_wanted && !thread->raised_line) {
        reach_told(thread, lines, object, &points->event[unit]);
        add_counting(thread, cost_ns(lines, object));
        return 0;
    }
    int32_t offset = unit * (int32_t)sizeof(_Py_CODEUNIT);
    if (what == PyTrace_CALL && lines->points) points_apply(object->f_frame->f_code, lines->points, functions_restore_lines);
    Counting *counting = branches_wanted ? counting_of(object->f_frame) : NULL;
    LineEvent other;
    const LineEvent *told = told_at(lines, what, offset, &other);
    /* What handles an exception is no line of its own if it stands further on in the line. */
    int is_same = thread->raised_line && thread->raised_line == object->f_lineno && offset > thread->raised_offset;
    thread->raised_line = 0;
    if (what == PyTrace_LINE) {
        if (!told->is_behind && !is_same) reach_line(lines, object, counting != NULL);
        add_counting(thread, cost_ns(lines, object));
    }
    if (thread->jump) count_last_jump(thread, lines, told);
    if (told->ending) thread->jump = &lines->branches->site[told->ending - 1];
    if (what == PyTrace_EXCEPTION) {
        thread->jump = NULL;
        if (counting) counting->last = NULL;
        mend_raise(thread, lines, argument, unit);
    } else if (what == PyTrace_OPCODE) {
        if (lines->branches) thread->jump = branches_site(lines->branches, offset);
        if (counting) count_in_invocation(counting, offset);
        else reach_opcode(lines, object, offset);
        add_counting(thread, recording.costs.branch_ns);
    }
    return 0;
}

static int is_counted(const Frame *frame) { return frame && function_lines(frame->f_code); }

/* Some of what this frame executes is not seen. */
static void note_incomplete(const Frame *frame) {
    lines_note("not all counted: the program traced itself (sys.settrace)");
    Counting *counting = branches_wanted && frame ? counting_of(frame) : NULL;
    if (counting) counting->is_incomplete = 1;
}

/* Do what the interpreter does when a program sets a trace function. A trace or profile function that runs now is
 * left alone, because no event is told of what it executes. */
static void set_trace(PyThreadState *state, int counted) {
    if (state->tracing || (state->c_tracefunc && state->c_tracefunc != trace)) return;
    if (counted) state->c_tracefunc = trace;
    state->cframe->use_tracing = counted || state->c_profilefunc ? 255 : 0;
}

SetAside lines_trace_begin(PyThreadState *state, Frame *frame, int *counted) {
    const Frame *caller = state->cframe->current_frame;
    Thread *thread = current_thread;
    SetAside aside = {thread ? thread->jump : NULL, NULL};
    if (thread) thread->jump = NULL;
    if (state->c_tracefunc != trace) {
        if (!state->tracing && is_counted(caller)) note_incomplete(caller);
    } else if (caller && caller->frame_obj && caller->frame_obj->f_trace_opcodes) {
        aside.opcodes = caller->frame_obj; /* the program may trace it from here on */
        aside.opcodes->f_trace_opcodes = 0;
    }
    *counted = !state->tracing && is_counted(frame);
    if (*counted && state->c_tracefunc && state->c_tracefunc != trace) note_incomplete(frame);
    if (*counted && thread) add_counting(thread, recording.costs.frame_ns);
    set_trace(state, *counted);
    return aside;
}

void lines_trace_end(PyThreadState *state, SetAside aside, int counted) {
    if (counted && state->c_tracefunc != trace) note_incomplete(NULL);
    set_trace(state, is_counted(state->cframe->current_frame));
    if (current_thread) current_thread->jump = aside.jump;
    if (aside.opcodes && state->c_tracefunc == trace) aside.opcodes->f_trace_opcodes = 1;
}

int lines_trace_begin_all(PyThreadState *state) {
    if (state->c_tracefunc) return 0;
    state->c_tracefunc = trace;
    state->cframe->use_tracing = 255;
    return 1;
}

void lines_trace_end_all(PyThreadState *state) {
    state->c_tracefunc = NULL;
    state->cframe->use_tracing = 0;
}

#endif
