/* _features_probe: reads features of made-up calls, for the tests. Lays arguments out as the interpreter would. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "python/features/features.h"

enum { MOST = 1024 };

/* Collects what a function's program tells; plain C while reading, so that what is allocated is the reader's alone. */
typedef struct Probe {
    PyObject_HEAD
    PyObject *function;
    FeatureProgram *program;
    char *names[MOST];
    PyTypeObject *types[MOST]; /* to compare only */
    int name_count, type_count, put_count;
    int32_t numbers[MOST];
    double values[MOST];
} Probe;

static int32_t number(void *context, const char *name) {
    Probe *probe = context;
    for (int at = 0; at < probe->name_count; at++)
        if (!strcmp(probe->names[at], name)) return at + 1;
    if (probe->name_count < MOST) probe->names[probe->name_count++] = strdup(name);
    return probe->name_count;
}

static int32_t type(void *context, PyTypeObject *type) {
    Probe *probe = context;
    for (int at = 0; at < probe->type_count; at++)
        if (probe->types[at] == type) return at + 1;
    if (probe->type_count < MOST) probe->types[probe->type_count++] = type;
    return probe->type_count;
}

static void put(void *context, int32_t number, double value) {
    Probe *probe = context;
    if (probe->put_count >= MOST) return;
    probe->numbers[probe->put_count] = number;
    probe->values[probe->put_count++] = value;
}

/* Parameters that the function keeps in cells are wrapped if the caller asks for it: before RESUME they are not. */
static int lay_out(PyCodeObject *code, PyObject *arguments, int cells, PyObject **locals) {
    const char *kinds = PyBytes_AS_STRING(code->co_localspluskinds);
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(arguments); at++) {
        PyObject *value = PyTuple_GET_ITEM(arguments, at);
        if (value == Py_Ellipsis) continue; /* stands for an unset variable */
        locals[at] = cells && kinds[at] & 0x40 ? PyCell_New(value) : Py_NewRef(value);
        if (!locals[at]) return 0;
    }
    return 1;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Nanoseconds a read, or -1 with an exception set. */
static double read_often(Probe *probe, PyObject *arguments, long times, int cells, int afresh) {
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(probe->function);
    PyObject *locals[MOST] = {0};
    if (PyTuple_GET_SIZE(arguments) > code->co_nlocalsplus || code->co_nlocalsplus > MOST)
        return PyErr_SetString(PyExc_ValueError, "more arguments than variables"), -1;
    int laid_out = lay_out(code, arguments, cells, locals);
    CallEntry entry = {code, locals, PyFunction_GET_GLOBALS(probe->function), PyFunction_GET_CLOSURE(probe->function)};
    FeatureSink sink = {probe, number, type, put};
    double before = seconds();
    for (long at = 0; laid_out && at < times; at++) {
        probe->put_count = 0;
        if (afresh) features_free(probe->program), probe->program = NULL;
        features_read(&probe->program, &entry, &sink);
    }
    double after = seconds();
    for (int at = 0; at < code->co_nlocalsplus; at++) Py_XDECREF(locals[at]);
    return laid_out ? (after - before) / (double)times * 1e9 : -1;
}

/* read(arguments, cells=False) -> [(name, value), ...] */
static PyObject *probe_read(PyObject *self, PyObject *arguments) {
    Probe *probe = (Probe *)self;
    PyObject *values;
    int cells = 0;
    if (!PyArg_ParseTuple(arguments, "O!|p", &PyTuple_Type, &values, &cells)) return NULL;
    if (read_often(probe, values, 1, cells, 0) < 0) return NULL;
    PyObject *found = PyList_New(0);
    for (int at = 0; found && at < probe->put_count; at++) {
        PyObject *pair = Py_BuildValue("sd", probe->names[probe->numbers[at] - 1], probe->values[at]);
        if (!pair || PyList_Append(found, pair)) Py_CLEAR(found);
        Py_XDECREF(pair);
    }
    return found;
}

/* repeat(arguments, times, afresh=False) -> ns a read; afresh: every read is a first one */
static PyObject *probe_repeat(PyObject *self, PyObject *arguments) {
    PyObject *values;
    long times;
    int afresh = 0;
    if (!PyArg_ParseTuple(arguments, "O!l|p", &PyTuple_Type, &values, &times, &afresh)) return NULL;
    double took = read_often((Probe *)self, values, times, 0, afresh);
    return took < 0 ? NULL : PyFloat_FromDouble(took);
}

/* keeps_error(arguments): read while a KeyError is pending, which is then raised as it was */
static PyObject *probe_keeps_error(PyObject *self, PyObject *arguments) {
    PyErr_SetString(PyExc_KeyError, "pending");
    read_often((Probe *)self, arguments, 1, 0, 0);
    return NULL;
}

static PyObject *probe_new(PyTypeObject *kind, PyObject *arguments, PyObject *names) {
    PyObject *function;
    if (names || !PyArg_ParseTuple(arguments, "O!", &PyFunction_Type, &function)) return NULL;
    Probe *probe = (Probe *)kind->tp_alloc(kind, 0);
    if (probe) probe->function = Py_NewRef(function);
    return (PyObject *)probe;
}

static void probe_free(PyObject *self) {
    Probe *probe = (Probe *)self;
    PyTypeObject *kind = Py_TYPE(self);
    features_free(probe->program);
    for (int at = 0; at < probe->name_count; at++) free(probe->names[at]);
    Py_DECREF(probe->function);
    kind->tp_free(self);
    Py_DECREF(kind);
}

static PyMethodDef METHODS[] = {
    {"read", probe_read, METH_VARARGS, NULL},
    {"repeat", probe_repeat, METH_VARARGS, NULL},
    {"keeps_error", probe_keeps_error, METH_VARARGS, NULL},
    {0},
};
static PyType_Slot SLOTS[] = {
    {Py_tp_new, probe_new}, {Py_tp_dealloc, probe_free}, {Py_tp_methods, METHODS}, {0, NULL}};
static PyType_Spec SPEC = {"_features_probe.Probe", sizeof(Probe), 0, Py_TPFLAGS_DEFAULT, SLOTS};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_features_probe", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__features_probe(void) {
    PyObject *module = PyModule_Create(&MODULE), *probe = PyType_FromSpec(&SPEC);
    if (module && probe) PyModule_AddObjectRef(module, "Probe", probe);
    Py_XDECREF(probe);
    return module;
}
