#include "tool_guard.h"

#if PY_VERSION_HEX >= 0x030C0000

static PyInterpreterState *guarded; /* NULL: none */
static int (*own_tool)(void);
static void (*give_way)(void);

/* Whether a call with this first argument is about our tool. */
static int is_ours(PyObject *tool) {
    if (!tool || !PyLong_CheckExact(tool) || own_tool() < 0 || PyInterpreterState_Get() != guarded) return 0;
    int overflow;
    return PyLong_AsLongAndOverflow(tool, &overflow) == own_tool();
}

static void make_way(PyObject *tool) {
    if (is_ours(tool)) give_way();
}

/* ---- the functions of sys.monitoring whose first argument is a tool ---- */

typedef PyObject *(*Fast)(PyObject *, PyObject *const *, Py_ssize_t);

enum { GET_TOOL, FREE_TOOL_ID, GET_EVENTS, USE_TOOL_ID, REGISTER_CALLBACK, SET_EVENTS, GET_LOCAL_EVENTS, SET_LOCAL_EVENTS };
static PyCFunction originals[SET_LOCAL_EVENTS + 1];

/* What only asks or gives up gets the answer of a tool that is free. */
static PyObject *get_tool(PyObject *self, PyObject *tool) {
    if (is_ours(tool)) Py_RETURN_NONE;
    return originals[GET_TOOL](self, tool);
}

static PyObject *free_tool_id(PyObject *self, PyObject *tool) {
    if (is_ours(tool)) Py_RETURN_NONE;
    return originals[FREE_TOOL_ID](self, tool);
}

static PyObject *get_events(PyObject *self, PyObject *tool) {
    make_way(tool);
    return originals[GET_EVENTS](self, tool);
}

#define GUARD(name, number)                                                                                  \
    static PyObject *name(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {                    \
        make_way(count ? arguments[0] : NULL);                                                               \
        return ((Fast)(void (*)(void))originals[number])(self, arguments, count);                            \
    }
GUARD(use_tool_id, USE_TOOL_ID)
GUARD(register_callback, REGISTER_CALLBACK)
GUARD(set_events, SET_EVENTS)
GUARD(get_local_events, GET_LOCAL_EVENTS)
GUARD(set_local_events, SET_LOCAL_EVENTS)

#define FAST(function) (PyCFunction)(void (*)(void))(function)
static const struct {
    const char *name;
    int flags; /* how the interpreter must call it; one that is called otherwise is not guarded */
    PyCFunction guard;
} functions[] = {
    [GET_TOOL] = {"get_tool", METH_O, get_tool},
    [FREE_TOOL_ID] = {"free_tool_id", METH_O, free_tool_id},
    [GET_EVENTS] = {"get_events", METH_O, get_events},
    [USE_TOOL_ID] = {"use_tool_id", METH_FASTCALL, FAST(use_tool_id)},
    [REGISTER_CALLBACK] = {"register_callback", METH_FASTCALL, FAST(register_callback)},
    [SET_EVENTS] = {"set_events", METH_FASTCALL, FAST(set_events)},
    [GET_LOCAL_EVENTS] = {"get_local_events", METH_FASTCALL, FAST(get_local_events)},
    [SET_LOCAL_EVENTS] = {"set_local_events", METH_FASTCALL, FAST(set_local_events)},
};
static PyMethodDef *methods[sizeof functions / sizeof *functions];

/* ---- life ---- */

/* The interpreter's definition of a function of sys.monitoring, which it never frees; NULL if it is not as known. */
static PyMethodDef *method_of(PyObject *monitoring, size_t at) {
    PyObject *function = PyObject_GetAttrString(monitoring, functions[at].name);
    PyMethodDef *method = function && PyCFunction_CheckExact(function) ? ((PyCFunctionObject *)function)->m_ml : NULL;
    Py_XDECREF(function);
    PyErr_Clear();
    return method && method->ml_flags == functions[at].flags ? method : NULL;
}

void tool_guard_start(PyObject *monitoring, int (*tool)(void), void (*way)(void)) {
    if (guarded) return;
    own_tool = tool;
    give_way = way;
    guarded = PyInterpreterState_Get();
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
        methods[at] = method_of(monitoring, at);
        if (!methods[at]) continue;
        originals[at] = methods[at]->ml_meth;
        methods[at]->ml_meth = functions[at].guard;
    }
}

void tool_guard_stop(void) {
    if (!guarded) return;
    guarded = NULL;
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++)
        if (methods[at]) methods[at]->ml_meth = originals[at];
}

#endif
