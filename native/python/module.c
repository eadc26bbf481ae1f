/* _perflaw_native: the one module of ours inside a recorded program. */
#include "module.h"

#include "core/base/filters.h"
#include "python/counts/branches.h"
#include "calibration.h"
#include "python/children/children.h"
#include "python/metrics/collections.h"
#include "definitions.h"
#include "event_source.h"
#include "functions.h"
#include "greenlets.h"
#include "python/counts/lines.h"
#include "python/interpreter/offsets.h"
#include "python/metrics/metrics.h"
#include "naming.h"
#include "process.h"
#include "threads.h"

static PyObject *finish_at_exit(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    module_finish();
    Py_RETURN_NONE;
}

/* Have the interpreter end the recording when it ends. */
static int call_at_exit(void) {
    static PyMethodDef method = {"finish", finish_at_exit, METH_NOARGS, NULL};
    static int is_told;
    if (is_told) return 1;
    PyObject *atexit = PyImport_ImportModule("atexit"), *callable = PyCFunction_New(&method, NULL);
    PyObject *done = atexit && callable ? PyObject_CallMethod(atexit, "register", "O", callable) : NULL;
    Py_XDECREF(callable);
    Py_XDECREF(atexit);
    Py_XDECREF(done);
    PyErr_Clear();
    return is_told = done != NULL;
}

/* Take everything of ours out of the interpreter: nothing of it is called any more. */
static void let_go(void) {
    recording.active = 0;
    lines_stop();
    collections_stop();
    functions_stop();
    events_stop();
    metrics_stop();
    greenlets_stop();
}

/* The same in a forked child, which leaves the files alone. */
static void let_go_of_child(void) {
    let_go();
    definitions_close();
}

/* The program is about to install a filter that would end it for what a recording does: all is written now, and nothing later. */
static void leave(const char *why) {
    if (!recording.active) return;
    PyGILState_STATE held = PyGILState_Ensure();
    if (recording.forked) let_go_of_child();
    else {
        recording_stop(why);
        module_finish();
        functions_settle();
        recording.stop_reason = NULL; /* it is told */
    }
    PyGILState_Release(held);
}

/* Begin the recording of this process. 0 if it cannot be recorded. */
static int begin(PyObject *settings) {
    process_forget();
    process_read_settings(settings);
    process_leave_children(let_go_of_child);
    functions_forget();
    const char *clock;
    Py_BEGIN_ALLOW_THREADS /* it waits some milliseconds */
    clock = process_start_clock();
    Py_END_ALLOW_THREADS
    if (!functions_start()) return 0;
    naming_start();
    greenlets_look();
    collections_start();
    if (!process_begin()) return 0;
    branches_start();
    if (!recording.settings.fake_clock && !calibration_take(settings)) calibrate();
    define_text("clock", clock);
    define_cpu("entered", recording.settings.entered_ns);
    define_start();
    return recording.active && call_at_exit() && events_start();
}

const char *module_start(PyObject *settings) {
    if (recording.active && !recording.forked) return "this process is being recorded already";
    if (begin(settings)) return NULL;
    return recording.stop_reason ? recording.stop_reason : "cannot begin";
}

void module_finish(void) {
    int is_written = process_write_end("");
    let_go();
    threads_release();
    if (is_written) define_cpu("released", cpu_of_process_ns());
    definitions_close();
}

static PyObject *start(PyObject *module, PyObject *settings) {
    (void)module;
    if (!PyDict_CheckExact(settings)) return PyErr_Format(PyExc_TypeError, "start() wants the settings as a dict");
    const char *obstacle = module_start(settings);
    if (obstacle) return PyErr_Format(PyExc_OSError, "%s", obstacle);
    if (!recording.settings.attached) {
        children_start();
        filters_watch(leave, 0);
    }
    define_cpu("begun", cpu_of_process_ns());
    Py_RETURN_NONE;
}

static PyObject *finish(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    module_finish();
    functions_settle();
    Py_RETURN_NONE;
}

static PyObject *costs(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return PyBytes_FromStringAndSize((const char *)&recording.costs, sizeof recording.costs);
}

static PyObject *offsets(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return offsets_dict();
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
    {"finish", finish, METH_NOARGS, "End the recording of a program that goes on."},
    {"costs", costs, METH_NOARGS, "What the tracer costs on this machine, as bytes: the setting COSTS of another process."},
    {"offsets", offsets, METH_NOARGS, "Where this interpreter keeps the frames of its threads, in bytes by name."},
    {"advance", (PyCFunction)(void (*)(void))advance, METH_VARARGS | METH_KEYWORDS,
     "Move the fake clock (--clock fake) forward by ns; with busy=False the thread was off the CPU meanwhile."},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_perflaw_native", .m_doc = "perflaw's tracer.", .m_size = -1, .m_methods = methods};

__attribute__((visibility("default"))) PyObject *PyInit__perflaw_native(void) { return PyModule_Create(&definition); }
