#include "calibration.h"

#include "python/counts/branches.h"
#include "python/counts/branches_trace.h"
#include "costs.h"
#include "event_source.h"
#include "functions.h"
#include "python/counts/lines.h"
#include "python/counts/lines_trace.h"
#include "process.h"
#include "python/interpreter/watching.h"

/* Many short runs, of which the least is taken: neighbours, interrupts and a changing frequency only ever add. */
enum { CALLS = 200, TRIALS = 40 };
enum { HANDLER_EVENTS = 7 }; /* events between two whose handlers are measured */
static const char SOURCE[] = "def recorded(a, b):\n    pass\n"
                             "def run(called, calls):\n    for call in calls:\n        called(call, call)\n"
                             "def loop(called, calls):\n    for call in calls:\n        if call:\n            called()\n";

/* A function that is called with `called` and `calls`, and goes round for each item of `calls`. */
typedef struct Loop {
    PyObject *run, *called, *calls;
} Loop;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Time of one run of a loop. */
static int64_t run_ns(const Loop *loop) {
    int64_t begun = clock_ns(&recording.clock);
    PyObject *result = PyObject_CallFunctionObjArgs(loop->run, loop->called, loop->calls, NULL);
    int64_t ns = clock_ns(&recording.clock) - begun;
    Py_XDECREF(result);
    return ns;
}

/* Least time of one run of a loop. */
static int64_t least_ns(const Loop *loop) {
    int64_t ns = INT64_MAX;
    for (int trial = 0; trial < TRIALS; trial++) ns = least(ns, run_ns(loop));
    return ns;
}

static PyCodeObject *code_of(PyObject *function) { return (PyCodeObject *)PyFunction_GET_CODE(function); }

/* The function of a loop, so that its calls are recorded as `mode` says. Readers drop its records, because its
 * number is 0. */
static Function *function_with_mode(PyObject *called, enum Mode mode) {
    Function *function = function_of_code(code_of(called));
    if (!function) return NULL;
    function->mode = mode;
    function->until_timed = INT32_MAX; /* if its calls are counted, then all of them */
    function->is_own = 1;
    function->process = recording.process;
    function->countdown = INT64_MAX; /* most calls are not sampled, as in a long run */
    return function;
}

/* ---- calls ---- */

/* Mean time between the two stamps of a call, over the last calls in the ring. */
static int64_t between_stamps(const Thread *thread) {
    int64_t sum = 0, calls = 0, leave = 0;
    uint64_t oldest = thread->ring.position > CALLS * 2 ? thread->ring.position - CALLS * 2 : 0;
    for (uint64_t at = thread->ring.position; at-- > oldest && calls < CALLS;) {
        const Event *event = &thread->ring.records[at & thread->ring.mask];
        if (event->kind == EVENT_EXIT) leave = event->value;
        else if (event->kind == EVENT_ENTER) sum += leave - event->value, calls++;
    }
    return calls ? sum / calls : 0;
}

/* Least time of a recorded call, and of what lies between its two stamps. */
static void least_recorded(const Loop *loop, int64_t *whole, int64_t *inside) {
    *whole = *inside = INT64_MAX;
    for (int trial = 0; trial < TRIALS; trial++) {
        *whole = least(*whole, run_ns(loop));
        *inside = least(*inside, between_stamps(current_thread));
    }
}

/* Least mean time of the handlers, which each trial measures many of. */
static void least_handlers(const Loop *loop) {
    Costs *costs = &recording.costs, found = *costs;
    found.before.fraction_ns = found.after.fraction_ns = found.leave.fraction_ns = INT64_MAX;
    costs->measured_events = HANDLER_EVENTS;
    for (int trial = 0; trial < TRIALS; trial++) {
        costs->before = costs->after = costs->leave = (HandlerMean){0, 0};
        current_thread->until_measured = 0;
        run_ns(loop);
        found.before.fraction_ns = least(found.before.fraction_ns, costs->before.fraction_ns);
        found.after.fraction_ns = least(found.after.fraction_ns, costs->after.fraction_ns);
        found.leave.fraction_ns = least(found.leave.fraction_ns, costs->leave.fraction_ns);
    }
    *costs = found;
    costs->measured_events = MEASURED_EVENTS;
}

/* The cost of a recorded call: what the function itself sees of it, and the rest, which its caller sees. A third of
 * what an empty call takes is taken for the function's own. */
static void measure_calls(const Loop *loop) {
    Costs *costs = &recording.costs;
    int64_t plain = least_ns(loop), recorded, inside;
    if (!function_with_mode(loop->called, ALWAYS) || !function_with_mode(loop->run, NEVER) || !events_start() ||
        !thread_get())
        return;
    current_thread->until_measured = INT32_MAX;
    least_recorded(loop, &recorded, &inside);
    least_handlers(loop);
    function_with_mode(loop->called, COUNTED);
    int64_t counted = least_ns(loop);
    function_with_mode(loop->called, NEVER);
    int64_t other = least_ns(loop);
    events_stop();
    plain = least(plain, least_ns(loop)); /* once more, for the machine may have been busy before */
    int64_t whole = recorded > plain ? (recorded - plain) / CALLS : 0, own = plain / CALLS / 3;
    int64_t enter = inside > own ? least(inside - own, whole) : 0;
    costs->inside_ns = enter - costs->after.fraction_ns / 256;
    costs->outside_ns = whole - enter - (costs->before.fraction_ns + costs->leave.fraction_ns) / 256;
    costs->enter_ns = enter;
    costs->exit_ns = whole - enter;
    costs->count_ns = counted > plain ? (counted - plain) / CALLS : 0;
    costs->other_ns = other > plain ? (other - plain) / CALLS / EVENTS_PER_CALL : 0;
    costs->calibrated = 1;
    current_thread->until_measured = 0;
}

/* ---- branches and lines ---- */

#if PY_VERSION_HEX >= 0x030C0000

/* Cost of one event of a branch. */
static int64_t branch_ns(const Loop *loop) {
    int64_t plain = least_ns(loop);
    if (!events_start() || !thread_get()) return 0;
    Function *function = function_of_code(code_of(loop->run));
    if (function) watch(function, WATCH_BRANCHES);
    int64_t counted = least_ns(loop);
    if (function) function->watched = 0;
    events_stop();
    return counted > plain ? (counted - plain) / (2 * CALLS) : 0; /* each time round there are two branches: for and if */
}

/* Cost of one event of a line. */
static int64_t line_ns(const Loop *loop) {
    int64_t plain = least_ns(loop);
    if (!events_start() || !thread_get()) return 0;
    lines_of_function(function_of_code(code_of(loop->run)));
    int64_t counted = least_ns(loop);
    events_stop();
    return counted > plain ? (counted - plain) / (2 * CALLS) : 0; /* each time round there are two lines */
}

#else

/* Cost of one instruction that is looked at. */
static int64_t branch_ns(const Loop *loop) {
    int64_t plain = least_ns(loop);
    PyThreadState *state = PyThreadState_Get();
    if (!branches_trace_begin_counting_only(state)) return 0;
    int64_t traced = least_ns(loop), instructions = branches_trace_end_counting_only(state) / TRIALS;
    return traced > plain && instructions ? (traced - plain) / instructions : 0;
}

/* Cost of one event of a line. */
static int64_t line_ns(const Loop *loop) {
    int64_t plain = least_ns(loop);
    PyThreadState *state = PyThreadState_Get();
    if (!thread_get()) return 0;
    lines_of_function(function_of_code(code_of(loop->run)));
    if (!lines_trace_begin_all(state)) return 0;
    int64_t traced = least_ns(loop);
    lines_trace_end_all(state);
    return traced > plain ? (traced - plain) / (2 * CALLS) : 0; /* each time round there are two lines */
}

#endif

void calibrate(void) {
    PyObject *names = PyDict_New(), *builtins = PyEval_GetBuiltins();
    if (names && builtins) PyDict_SetItemString(names, "__builtins__", builtins);
    PyObject *done = names ? PyRun_String(SOURCE, Py_file_input, names, names) : NULL;
    PyObject *calls = PyTuple_New(CALLS);
    for (Py_ssize_t at = 0; calls && at < CALLS; at++) PyTuple_SET_ITEM(calls, at, Py_NewRef(Py_None));
    PyObject *recorded = done ? PyDict_GetItemString(names, "recorded") : NULL;
    if (recorded && calls) {
        Loop run = {PyDict_GetItemString(names, "run"), recorded, calls};
        Loop loop = {PyDict_GetItemString(names, "loop"), recorded, calls};
        measure_calls(&run);
        if (branches_wanted) recording.costs.branch_ns = branch_ns(&loop);
        int counted = lines_wanted && function_with_mode(loop.run, ALWAYS);
        if (counted) recording.costs.line_ns = line_ns(&loop);
        if (counted && !branches_wanted) recording.costs.branch_ns = recording.costs.line_ns; /* much the same work */
    }
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(calls);
    Py_XDECREF(names);
    if (current_thread) current_thread->overhead_ns = 0;
}
