/* Events of Python 3.12 and later: sys.monitoring (PEP 669).
 *
 * All events are global. The first event of a function that is not recorded returns DISABLE, after which the
 * interpreter runs the function as if it was not watched. PY_UNWIND and PY_THROW exist only as global events and
 * cannot be disabled. */
#include "event_source.h"

#include "events.h"
#include "process.h"
#include "python/interpreter/tool_guard.h"
#include "python/interpreter/watching.h"

#if PY_VERSION_HEX >= 0x030C0000

/* ---- calls and returns ---- */

/* The calling thread at an event of its current frame; NULL if nothing is recorded. */
static inline Thread *thread_here(void) {
    if (!recording.active) return NULL;
    if (current_thread) return current_thread;
    Thread *thread = thread_begin();
    if (thread && recording.settings.attached) event_open_earlier(thread, frame_current()->previous);
    return thread;
}

/* The function that an event of this frame is about, and its thread; NULL if nothing is recorded. */
static inline Function *function_at(Frame *frame, Thread **thread) {
    *thread = thread_here();
    return *thread ? function_of(frame) : NULL;
}

/* The answer to an event that is not recorded. */
static PyObject *not_recorded(Thread *thread, const Function *function) {
    if (function && function->mode == NEVER) return Py_NewRef(monitoring_disable);
    if (thread && !(function && function->mode == COUNTED)) thread->overhead_ns += recording.costs.other_ns;
    Py_RETURN_NONE;
}

/* An event by which a frame begins or goes on. */
static inline PyObject *enter(int resumes) {
    Thread *thread = thread_here();
    if (!thread) Py_RETURN_NONE;
    MeasuredEvent measured = measured_begin(thread);
    Frame *frame = frame_current();
    Function *function = function_of(frame);
    if (!function || function->mode == NEVER) return not_recorded(thread, function);
    if (!event_is_wanted(thread, function)) return not_recorded(thread, function);
    if (budget_counts(thread, function)) {
        event_count(thread, function, frame->previous);
        Py_RETURN_NONE;
    }
    int64_t now = clock_ns(&recording.clock); /* after the function was met, which takes its time */
    if (resumes) event_resume(thread, function, frame, frame->previous, now, measured);
    else event_enter(thread, function, frame, frame->previous, now, measured);
    Py_RETURN_NONE;
}

static PyObject *on_start(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    return enter(0);
}

static PyObject *on_resume(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    return enter(1);
}

/* PY_THROW may not be disabled. */
static PyObject *on_throw(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    Py_DECREF(on_resume(self, arguments, count, names));
    Py_RETURN_NONE;
}

static inline int leave_recorded(int kind, int hands, Frame *frame, int64_t now) {
    Thread *thread = recording.active ? current_thread : NULL;
    return thread && event_leave(thread, kind, hands, frame, now);
}

/* An event by which a frame ends or is suspended, and which may be disabled. */
static inline PyObject *leave(int kind, int hands) {
    int64_t now = clock_ns(&recording.clock);
    Frame *frame = frame_current();
    if (leave_recorded(kind, hands, frame, now)) Py_RETURN_NONE;
    Thread *thread;
    return not_recorded(thread, function_at(frame, &thread));
}

static PyObject *on_return(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    return leave(EVENT_EXIT, 0);
}

static PyObject *on_yield(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)count, (void)names; /* the code, the offset, and what is yielded */
    return leave(EVENT_YIELD, event_hands((const PyCodeObject *)arguments[0], arguments[2]));
}

static PyObject *on_unwind(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    leave_recorded(EVENT_EXIT, 0, frame_current(), clock_ns(&recording.clock));
    Py_RETURN_NONE;
}

/* ---- branches, lines and jumps of watched code ---- */

static inline void add_overhead(int64_t ns) {
    if (current_thread) current_thread->overhead_ns += ns;
}

/* Count the outcome of a branch over the whole run. Gives whether it is wanted. */
static int count_in_line(PyObject *code, int32_t offset, long destination) {
    Lines *lines = function_lines((PyCodeObject *)code);
    const Site *site = lines && lines->branches ? branches_site(lines->branches, offset) : NULL;
    if (!site || !site->wanted) return 0;
    lines_count_jump(lines, site, destination != site->next);
    return 1;
}

/* Count the outcome of a branch in its invocation. */
static void count_in_invocation(PyObject *code, int32_t offset, long destination) {
    Counting *counting = current_thread ? counting_of(frame_current()) : NULL;
    if (!counting || (PyObject *)counting->function->code != code) return;
    const Site *site = branches_site(counting->function->branches, offset);
    if (site) counting_add(counting, site, destination != site->next);
}

/* BRANCH: the code, the offset of the jump, and the offset where it goes on. */
static PyObject *on_branch(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)count, (void)names;
    if (!recording.active && !lines_process) Py_RETURN_NONE;
    int32_t offset = (int32_t)PyLong_AsLong(arguments[1]);
    long destination = PyLong_AsLong(arguments[2]);
    int wanted = lines_wanted && count_in_line(arguments[0], offset, destination);
    if (branches_wanted) count_in_invocation(arguments[0], offset, destination);
    add_overhead(recording.costs.branch_ns);
    if (!wanted && !branches_wanted && lines_process) return Py_NewRef(monitoring_disable);
    Py_RETURN_NONE;
}

/* LINE: the code, and the line that is executed next. */
static PyObject *on_line(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)count, (void)names;
    Lines *lines = function_lines((PyCodeObject *)arguments[0]);
    if (lines) lines_count(lines, (int)PyUnstable_Long_CompactValue((PyLongObject *)arguments[1]));
    add_overhead(recording.costs.line_ns);
    Py_RETURN_NONE;
}

/* JUMP: the code, the offset of the jump, and that of its target. A jump back into its own line executes the line
 * again, and no LINE tells that. */
static PyObject *on_jump(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)count, (void)names;
    Lines *lines = function_lines((PyCodeObject *)arguments[0]);
    long unit = PyLong_AsLong(arguments[1]) / (long)sizeof(_Py_CODEUNIT);
    int line = lines && lines->loops && unit >= 0 && unit < lines->units ? lines->loops[unit] : 0;
    if (!line && lines) return Py_NewRef(monitoring_disable);
    if (line) lines_count(lines, line);
    add_overhead(recording.costs.line_ns);
    Py_RETURN_NONE;
}

static const struct {
    const char *event;
    Handler handler;
} global_handlers[] = {
    {"PY_START", on_start}, {"PY_RESUME", on_resume}, {"PY_THROW", on_throw},
    {"PY_RETURN", on_return}, {"PY_YIELD", on_yield}, {"PY_UNWIND", on_unwind},
}, local_handlers[] = {{"BRANCH", on_branch}, {"LINE", on_line}, {"JUMP", on_jump}};

/* Take a tool identifier other than `except`, and have events told. 0 if there is none. */
static int begin(int except) {
    if (!monitoring_open(except)) return 0;
    long all = 0, local = 0;
    for (size_t at = 0; at < sizeof global_handlers / sizeof *global_handlers; at++)
        if (!monitoring_register(global_handlers[at].event, global_handlers[at].handler, &all)) return 0;
    for (size_t at = 0; at < sizeof local_handlers / sizeof *local_handlers; at++)
        if (!monitoring_register(local_handlers[at].event, local_handlers[at].handler, &local)) return 0;
    return monitoring_set(all);
}

static int move(void) {
    int wanted = monitoring_tool();
    monitoring_close();
    return begin(wanted);
}

/* The program wants our tool identifier. */
static void make_way(void) {
    if (!functions_move(move)) recording_stop("the program uses every tool of sys.monitoring itself");
}

int events_start(void) {
    if (!begin(-1)) return 0;
    monitoring_guard(make_way);
    return 1;
}

void events_stop(void) {
    tool_guard_stop();
    monitoring_close();
}

#endif
