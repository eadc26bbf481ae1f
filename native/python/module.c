/* _perflaw_native: the one module of ours inside a recorded program. */
#include "metrics.h"

static PyObject *start(PyObject *module, PyObject *settings) {
    PyObject *at_end = PyObject_GetAttrString(module, "finish");
    if (!PyDict_CheckExact(settings)) return PyErr_Format(PyExc_TypeError, "start() wants the settings as a dict");
    int begun = at_end && process_start(settings, at_end);
    Py_XDECREF(at_end);
    if (!begun) return PyErr_Format(PyExc_OSError, "%s", recorder.lost ? recorder.lost : "cannot begin");
    children_start();
    Py_RETURN_NONE;
}

static PyObject *finish(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    process_finish();
    Py_RETURN_NONE;
}

static PyObject *advance(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    static char *words[] = {"ns", "busy", NULL};
    long long ns;
    int busy = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "L|p", words, &ns, &busy)) return NULL;
    recorder.fake_now += ns;
    if (!busy && recorder.active && current_thread) metrics_tell_off(current_thread, ns);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start", start, METH_O, "Begin to record this process as the settings say."},
    {"finish", finish, METH_NOARGS, "End the recording; called at exit."},
    {"advance", (PyCFunction)(void (*)(void))advance, METH_VARARGS | METH_KEYWORDS,
     "Move the fake clock (--clock fake) forward by ns; with busy=False the thread was off the CPU meanwhile."},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_perflaw_native", .m_doc = "perflaw's tracer.", .m_size = -1, .m_methods = methods};

__attribute__((visibility("default"))) PyObject *PyInit__perflaw_native(void) { return PyModule_Create(&definition); }
