/* _perflaw_native: the one module of ours inside a recorded program. */
#include "python/counts/branches.h"
#include "calibration.h"
#include "python/children/children.h"
#include "python/metrics/collections.h"
#include "definitions.h"
#include "event_source.h"
#include "functions.h"
#include "python/counts/lines.h"
#include "python/metrics/metrics.h"
#include "naming.h"
#include "process.h"

static int call_at_exit(PyObject *finish) {
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *done = atexit ? PyObject_CallMethod(atexit, "register", "O", finish) : NULL;
    Py_XDECREF(atexit);
    Py_XDECREF(done);
    PyErr_Clear();
    return done != NULL;
}

/* Begin the recording of this process. finish: what the interpreter is to call at its end. 0 if it cannot be
 * recorded. */
static int begin(PyObject *settings, PyObject *finish) {
    process_read_settings(settings);
    const char *clock = process_start_clock();
    if (!functions_start()) return 0;
    naming_start();
    collections_start();
    if (!process_begin()) return 0;
    branches_start();
    if (!recording.settings.fake_clock) calibrate();
    define_text("clock", clock);
    define_cpu("entered", recording.settings.entered_ns);
    define_start();
    return recording.active && call_at_exit(finish) && events_start();
}

static PyObject *start(PyObject *module, PyObject *settings) {
    PyObject *at_end = PyObject_GetAttrString(module, "finish");
    if (!PyDict_CheckExact(settings)) return PyErr_Format(PyExc_TypeError, "start() wants the settings as a dict");
    int begun = at_end && begin(settings, at_end);
    Py_XDECREF(at_end);
    const char *reason = recording.stop_reason ? recording.stop_reason : "cannot begin";
    if (!begun) return PyErr_Format(PyExc_OSError, "%s", reason);
    children_start();
    Py_RETURN_NONE;
}

static PyObject *finish(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    process_write_end("");
    recording.active = 0;
    lines_stop();
    collections_stop();
    events_stop();
    Py_RETURN_NONE;
}

static PyObject *advance(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    static char *keywords[] = {"ns", "busy", NULL};
    long long ns;
    int busy = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "L|p", keywords, &ns, &busy)) return NULL;
    recording.fake_now += ns;
    if (!busy && recording.active && current_thread) metrics_write_fake_off_cpu(current_thread, ns);
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
