/* What the tracer itself costs, measured on this machine in this process: loops of calls with and without it. */
#include "branches.h"
#include "event.h"
#include "lines_count.h"

#include <stdlib.h>

enum { CALLS = 400, TRIALS = CALIBRATE_TRIALS };
static const char source[] = "def recorded():\n    pass\n"
                             "def run(called, calls):\n    for call in calls:\n        called()\n"
                             "def loop(called, calls):\n    for call in calls:\n        if call:\n            called()\n";

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t calibrate_timed(PyObject *run, PyObject *called, PyObject *calls) {
    int64_t trials[TRIALS];
    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t begun = clock_ns(&recorder.clock);
        PyObject *result = PyObject_CallFunctionObjArgs(run, called, calls, NULL);
        trials[trial] = clock_ns(&recorder.clock) - begun;
        Py_XDECREF(result);
    }
    qsort(trials, TRIALS, sizeof *trials, ascending);
    return trials[TRIALS / 2];
}

/* Mean time between the two stamps of a call, of the last that stand in the ring. */
static int64_t between_stamps(const Thread *thread) {
    int64_t sum = 0, calls = 0, leave = 0;
    uint64_t oldest = thread->ring.position > CALLS * 8 ? thread->ring.position - CALLS * 8 : 0;
    for (uint64_t at = thread->ring.position; at-- > oldest && calls < CALLS;) {
        const Event *event = &thread->ring.records[at & thread->ring.mask];
        if (event->kind == EVENT_EXIT) leave = event->value;
        else if (event->kind == EVENT_ENTER) sum += leave - event->value, calls++;
    }
    return calls ? sum / calls : 0;
}

static Function *function_with(PyObject *called, enum Mode mode) {
    Function *function = function_of_code((PyCodeObject *)PyFunction_GET_CODE(called));
    if (!function) return NULL;
    function->mode = mode;
    function->own = 0;
    function->process = recorder.process; /* number 0: readers drop its records */
    function->countdown = INT64_MAX;      /* most calls are not sampled, as in a long run */
    return function;
}

/* Costs of a recorded call: what the function itself sees of it, and its caller the rest. */
static void measure(PyObject *run, PyObject *called, PyObject *calls) {
    Costs *costs = &recorder.costs;
    int64_t plain = calibrate_timed(run, called, calls);
    if (!function_with(called, ALWAYS) || !function_with(run, SKIP) || !events_start() || !thread_get()) return;
    int64_t recorded = calibrate_timed(run, called, calls);
    int64_t inside = between_stamps(current_thread);
    function_with(called, FROM_OWN); /* its caller is not the person's: looked at and left alone */
    int64_t other = calibrate_timed(run, called, calls);
    events_stop();
    int64_t whole = (recorded - plain) / CALLS;
    costs->enter_ns = whole > inside ? inside : whole / 2;
    costs->exit_ns = whole > costs->enter_ns ? whole - costs->enter_ns : 0;
    costs->other_ns = other > plain ? (other - plain) / CALLS / EVENTS_A_CALL : 0;
}

void calibrate(void) {
    PyObject *names = PyDict_New(), *builtins = PyEval_GetBuiltins();
    if (names && builtins) PyDict_SetItemString(names, "__builtins__", builtins);
    PyObject *done = names ? PyRun_String(source, Py_file_input, names, names) : NULL;
    PyObject *calls = PyTuple_New(CALLS);
    for (Py_ssize_t at = 0; calls && at < CALLS; at++) PyTuple_SET_ITEM(calls, at, Py_NewRef(Py_None));
    PyObject *recorded = done ? PyDict_GetItemString(names, "recorded") : NULL;
    if (recorded && calls) measure(PyDict_GetItemString(names, "run"), recorded, calls);
    if (recorded && calls && branches_wanted)
        recorder.costs.branch_ns = branches_calibrate(PyDict_GetItemString(names, "loop"), recorded, calls);
    PyObject *loop = recorded && calls && lines_wanted ? PyDict_GetItemString(names, "loop") : NULL;
    Function *counted = loop ? function_with(loop, ALWAYS) : NULL;
    if (counted) recorder.costs.line_ns = lines_calibrate(loop, recorded, calls);
    if (counted && !branches_wanted) recorder.costs.branch_ns = recorder.costs.line_ns; /* much the same work */
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(calls);
    Py_XDECREF(names);
    if (current_thread) current_thread->taken = 0;
}
