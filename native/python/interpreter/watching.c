#include "watching.h"

#include "superinstructions.h"
#include "tool_guard.h"

#if PY_VERSION_HEX >= 0x030C0000

static PyObject *monitoring;
static int tool = -1;
static int is_calling; /* a function of sys.monitoring is called by us */
PyObject *monitoring_disable;

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

static long event_bit(const char *name) {
    PyObject *events = PyObject_GetAttrString(monitoring, "events");
    PyObject *number = events ? PyObject_GetAttrString(events, name) : NULL;
    long value = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    Py_XDECREF(events);
    return value;
}

/* Call a function of sys.monitoring. 0 if it raised, which is forgotten. */
static int call(const char *method, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *arguments = Py_VaBuildValue(format, values), *bound = PyObject_GetAttrString(monitoring, method);
    va_end(values);
    is_calling = 1;
    PyObject *result = arguments && bound ? PyObject_CallObject(bound, arguments) : NULL;
    is_calling = 0;
    Py_XDECREF(arguments);
    Py_XDECREF(bound);
    Py_XDECREF(result);
    if (!result) PyErr_Clear();
    return result != NULL;
}

/* 0, 1, 2 and 5 are for debuggers, coverage, profilers and optimizers; a tool that looks for a free one begins low. */
static const int choices[] = {4, 3, 5, 2, 1, 0};

/* Take a tool identifier other than `except`. 0 if there is none. */
static int take_tool(int except) {
    for (size_t at = 0; tool < 0 && at < sizeof choices / sizeof *choices; at++)
        if (choices[at] != except && call("use_tool_id", "(is)", choices[at], "perflaw")) tool = choices[at];
    return tool >= 0;
}

int monitoring_open(int except) {
    monitoring = PySys_GetObject("monitoring");
    if (!monitoring || PyType_Ready(&callback_type) < 0) return 0;
    if (!monitoring_disable) monitoring_disable = PyObject_GetAttrString(monitoring, "DISABLE");
    /* Places that an earlier recording of this process did not want are told again. */
    return take_tool(except) && monitoring_disable && call("restart_events", "()");
}

int monitoring_register(const char *event, Handler handler, long *events) {
    Callback *callback = PyObject_New(Callback, &callback_type);
    if (!callback) return 0;
    callback->call = (vectorcallfunc)handler;
    int done = call("register_callback", "(ilO)", tool, event_bit(event), callback);
    Py_DECREF(callback);
    *events |= event_bit(event);
    return done;
}

int monitoring_set(long events) { return call("set_events", "(il)", tool, events); }

void watch(Function *function, int events) {
    if (tool < 0 || (function->watched & events) == events) return;
    function->watched |= events;
    long bits = function->watched & WATCH_BRANCHES ? event_bit("BRANCH") : 0;
    if (function->watched & WATCH_LINES) bits |= event_bit("LINE");
    if (function->watched & WATCH_JUMPS) bits |= event_bit("JUMP");
    call("set_local_events", "(iOl)", tool, function->code, bits);
}

int monitoring_tool(void) { return tool; }

static int guarded_tool(void) { return is_calling ? -1 : tool; }

void monitoring_guard(void (*make_way)(void)) { tool_guard_start(monitoring, guarded_tool, make_way); }

void watch_again(Function *function) {
    int events = function->watched;
    function->watched = 0;
    if (events) watch(function, events);
}

void unwatch(Function *function) {
    if (tool >= 0 && function->watched) call("set_local_events", "(iOl)", tool, function->code, 0L);
    function->watched = 0;
}

static void free_tool(void) {
    int ours = tool;
    tool = -1; /* nothing is guarded any more */
    call("free_tool_id", "(i)", ours);
}

void monitoring_close(void) {
    if (tool < 0) return;
    monitoring_set(0);
    free_tool();
}

#if HAS_SUPERINSTRUCTIONS
/* Setting events of one code object has the interpreter see at once which ones are wanted there, and ours are not. Code
 * that was being executed when the recording ended has seen that already. */
static void settle(Function *function) {
    if (code_is_instrumented(function->code)) {
        call("set_local_events", "(iOl)", tool, function->code, event_bit("PY_YIELD"));
        call("set_local_events", "(iOl)", tool, function->code, 0L);
    }
    if (!code_is_instrumented(function->code)) superinstructions_restore(function->code);
}

Function *monitoring_settle(Function *function, int most) {
    if (tool >= 0 || !monitoring || !take_tool(-1)) return NULL;
    for (; function && most > 0; most--, function = function->next) settle(function);
    free_tool();
    return function;
}
#endif

#endif
