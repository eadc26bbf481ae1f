/* Events of Python 3.12 and later: sys.monitoring (PEP 669).
 *
 * All events are global; the first one of a function that is not recorded answers DISABLE, after which the interpreter
 * runs it as if nobody watched. PY_UNWIND and PY_THROW exist only as global events and cannot be disabled. */
#include "branches.h"
#include "event.h"
#include "lines_count.h"

#if PY_VERSION_HEX >= 0x030C0000

const char *events_name(void) { return "sys.monitoring (PEP 669)"; }

static PyObject *monitoring, *disable;
static int tool = -1;

typedef PyObject *(*Handler)(PyObject *callback, PyObject *const *arguments, size_t count, PyObject *names);

/* A callable of ours: a bare vectorcall, which spares the interpreter the checks of a built-in function's arguments. */
typedef struct Callback {
    PyObject_HEAD
    vectorcallfunc call;
} Callback;

static PyTypeObject callback_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "_perflaw_native.Callback",
    .tp_basicsize = sizeof(Callback),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Callback, call),
    .tp_call = PyVectorcall_Call,
};

/* What an event of the frame at hand is about; NULL where nothing is recorded. */
static inline Function *function_at(Frame *frame, Thread **thread) {
    *thread = recorder.active ? thread_get() : NULL;
    return *thread ? function_of(frame) : NULL;
}

static PyObject *other(Thread *thread, const Function *function) {
    if (function && function->mode == SKIP) return Py_NewRef(disable);
    if (thread) thread->taken += recorder.costs.other_ns;
    Py_RETURN_NONE;
}

/* An event by which a frame begins or goes on. */
static inline PyObject *entered(int resumes) {
    Thread *thread;
    Frame *frame = frame_current();
    Function *function = function_at(frame, &thread);
    if (!function || function->mode == SKIP) return other(thread, function);
    if (!event_wanted(function, frame->previous)) return other(thread, function);
    int64_t now = clock_ns(&recorder.clock); /* after the first sight of a function */
    if (resumes) event_resume(thread, function, frame, frame->previous, now);
    else event_enter(thread, function, frame, frame->previous, now);
    Py_RETURN_NONE;
}

static PyObject *started(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    return entered(0);
}

static PyObject *resumed(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    return entered(1);
}

/* PY_THROW, which may not be disabled. */
static PyObject *thrown(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    Py_DECREF(resumed(self, arguments, count, names));
    Py_RETURN_NONE;
}

static inline int leave(int kind, Frame *frame, int64_t now) {
    Thread *thread = recorder.active ? current_thread : NULL;
    return thread && event_leave(thread, kind, frame, now);
}

/* An event by which a frame ends or is suspended, where it may be disabled. */
static inline PyObject *left(int kind) {
    int64_t now = clock_ns(&recorder.clock);
    Frame *frame = frame_current();
    if (leave(kind, frame, now)) Py_RETURN_NONE;
    Thread *thread;
    return other(thread, function_at(frame, &thread));
}

static PyObject *returned(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    return left(EVENT_EXIT);
}

static PyObject *yielded(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    return left(EVENT_YIELD);
}

static PyObject *unwound(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)arguments, (void)count, (void)names;
    leave(EVENT_EXIT, frame_current(), clock_ns(&recorder.clock));
    Py_RETURN_NONE;
}

/* ---- events of the code that events_watch named ---- */

static inline void take_out(int64_t ns) {
    if (current_thread) current_thread->taken += ns;
}

/* The outcome of a branch in the whole run. Returns whether it is wanted. */
static int counted_in_line(PyObject *code, int32_t offset, long goes_on) {
    Lines *lines = lines_of_code((PyCodeObject *)code);
    const Site *site = lines && lines->branches ? branches_site(lines->branches, offset) : NULL;
    if (!site || !site->wanted) return 0;
    lines_count_jump(lines, site, goes_on != site->next);
    return 1;
}

static void count_in_invocation(PyObject *code, int32_t offset, long goes_on) {
    Counting *counting = current_thread ? branches_of(frame_current()) : NULL;
    if (!counting || (PyObject *)counting->function->code != code) return;
    const Site *site = branches_site(counting->function->branches, offset);
    if (site) branches_count(counting, site, goes_on != site->next);
}

/* BRANCH: its arguments are the code, the jump and where it goes on. */
static PyObject *branched(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)count, (void)names;
    if (!recorder.active && !lines_process) Py_RETURN_NONE;
    int32_t offset = (int32_t)PyLong_AsLong(arguments[1]);
    long goes_on = PyLong_AsLong(arguments[2]);
    int wanted = lines_wanted && counted_in_line(arguments[0], offset, goes_on);
    if (branches_wanted) count_in_invocation(arguments[0], offset, goes_on);
    take_out(recorder.costs.branch_ns);
    if (!wanted && !branches_wanted && lines_process) return Py_NewRef(disable);
    Py_RETURN_NONE;
}

/* LINE: the code, and the line that is about to be executed. */
static PyObject *line_reached(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)count, (void)names;
    Lines *lines = lines_of_code((PyCodeObject *)arguments[0]);
    if (lines) lines_count(lines, (int)PyUnstable_Long_CompactValue((PyLongObject *)arguments[1]));
    take_out(recorder.costs.line_ns);
    Py_RETURN_NONE;
}

/* JUMP: the code, the jump and its target. A jump back into its own line executes it again, and no LINE tells that. */
static PyObject *jumped(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)count, (void)names;
    Lines *lines = lines_of_code((PyCodeObject *)arguments[0]);
    long unit = PyLong_AsLong(arguments[1]) / (long)sizeof(_Py_CODEUNIT);
    int line = lines && lines->loops && unit >= 0 && unit < lines->units ? lines->loops[unit] : 0;
    if (!line && lines) return Py_NewRef(disable);
    if (line) lines_count(lines, line);
    take_out(recorder.costs.line_ns);
    Py_RETURN_NONE;
}

static const struct {
    const char *name;
    Handler handler;
} watched[] = {
    {"PY_START", started}, {"PY_RESUME", resumed}, {"PY_THROW", thrown},
    {"PY_RETURN", returned}, {"PY_YIELD", yielded}, {"PY_UNWIND", unwound},
};

static long event_number(const char *name) {
    PyObject *events = PyObject_GetAttrString(monitoring, "events");
    PyObject *number = events ? PyObject_GetAttrString(events, name) : NULL;
    long value = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    Py_XDECREF(events);
    return value;
}

static int call(const char *method, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *arguments = Py_VaBuildValue(format, values), *bound = PyObject_GetAttrString(monitoring, method);
    va_end(values);
    PyObject *result = arguments && bound ? PyObject_CallObject(bound, arguments) : NULL;
    Py_XDECREF(arguments);
    Py_XDECREF(bound);
    Py_XDECREF(result);
    if (!result) PyErr_Clear();
    return result != NULL;
}

static int register_one(const char *name, Handler handler) {
    Callback *callback = PyObject_New(Callback, &callback_type);
    if (!callback) return 0;
    callback->call = (vectorcallfunc)handler;
    int done = call("register_callback", "(ilO)", tool, event_number(name), callback);
    Py_DECREF(callback);
    return done;
}

int events_start(void) {
    monitoring = PySys_GetObject("monitoring");
    if (!monitoring || PyType_Ready(&callback_type) < 0) return 0;
    disable = PyObject_GetAttrString(monitoring, "DISABLE");
    /* 0, 1, 2 and 5 are for debuggers, coverage, profilers and optimizers; a tool that looks for a free one begins low. */
    tool = call("use_tool_id", "(is)", 4, "perflaw") ? 4 : call("use_tool_id", "(is)", 3, "perflaw") ? 3 : -1;
    if (tool < 0 || !disable) return 0;
    long all = 0;
    for (size_t at = 0; at < sizeof watched / sizeof *watched; at++) {
        if (!register_one(watched[at].name, watched[at].handler)) return 0;
        all |= event_number(watched[at].name);
    }
    if (!register_one("BRANCH", branched) || !register_one("LINE", line_reached) || !register_one("JUMP", jumped)) return 0;
    return call("set_events", "(il)", tool, all);
}

void events_watch(Function *function, int what) {
    if (tool < 0 || (function->watched & what) == what) return;
    function->watched |= what;
    long events = function->watched & WATCH_BRANCHES ? event_number("BRANCH") : 0;
    if (function->watched & WATCH_LINES) events |= event_number("LINE");
    if (function->watched & WATCH_JUMPS) events |= event_number("JUMP");
    call("set_local_events", "(iOl)", tool, function->code, events);
}

int64_t branches_calibrate(PyObject *loop, PyObject *called, PyObject *calls) {
    int64_t plain = calibrate_timed(loop, called, calls);
    if (!events_start() || !thread_get()) return 0;
    Function *function = function_of_code((PyCodeObject *)PyFunction_GET_CODE(loop));
    if (function) events_watch(function, WATCH_BRANCHES);
    int64_t counted = calibrate_timed(loop, called, calls);
    if (function) function->watched = 0;
    events_stop();
    return counted > plain ? (counted - plain) / (2 * PyTuple_GET_SIZE(calls)) : 0; /* each time round: for, if */
}

int64_t lines_calibrate(PyObject *loop, PyObject *called, PyObject *calls) {
    int64_t plain = calibrate_timed(loop, called, calls);
    if (!events_start() || !thread_get()) return 0;
    lines_meet(function_of_code((PyCodeObject *)PyFunction_GET_CODE(loop)));
    int64_t counted = calibrate_timed(loop, called, calls);
    events_stop();
    return counted > plain ? (counted - plain) / (2 * PyTuple_GET_SIZE(calls)) : 0; /* each time round: two lines */
}

void events_stop(void) {
    if (tool < 0) return;
    call("set_events", "(il)", tool, 0l);
    call("free_tool_id", "(i)", tool);
    tool = -1;
}

#endif
