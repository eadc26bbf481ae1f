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
enum { CALLS = 200, TRIALS = 8, ROUNDS = 4 };
static const char SOURCE[] = "def recorded(a, b):\n    pass\n"
                             "def run(called, calls):\n    for call in calls:\n        called(call, call)\n"
                             "def generated(calls):\n    for call in calls:\n        yield\n"
                             "def resume(called, calls):\n    for nothing in called(calls):\n        pass\n"
                             "def loop(called, calls):\n    for call in calls:\n        if call:\n            called()\n"
                             "def sums(called, calls, one=1, two=2, items=[3, 5, 7]):\n    for call in calls:\n"
                             "        held = items[one] * two - one; items[two] = held; less = held < items[one]\n";

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

/* ---- calls, and generators that go on ---- */

/* Least times of a loop, whose function is recorded, only counted, or left out. */
typedef struct LoopTimes {
    int64_t plain, recorded, counted, other; /* of a run of the loop */
    int64_t inside; /* between two stamps, of one time round */
    HandlerMean before, after, leave; /* of one time round */
} LoopTimes;

/* Mean time between two stamps, over the last times round that are in the ring. */
static int64_t between_stamps(const Thread *thread) {
    int64_t sum = 0, rounds = 0, leave = 0;
    uint64_t oldest = thread->ring.position > CALLS * 2 ? thread->ring.position - CALLS * 2 : 0;
    for (uint64_t at = thread->ring.position; at-- > oldest && rounds < CALLS;) {
        const Event *event = &thread->ring.records[at & thread->ring.mask];
        if (event->kind == EVENT_EXIT || event->kind == EVENT_YIELD) leave = event->value;
        else if (event->kind == EVENT_ENTER || event->kind == EVENT_RESUME) sum += leave - event->value, rounds++;
    }
    return rounds ? sum / rounds : 0;
}

/* Lower the least times of a recorded loop. */
static void least_recorded(const Loop *loop, LoopTimes *times) {
    current_thread->until_measured = INT32_MAX;
    for (int trial = 0; trial < TRIALS; trial++) {
        times->recorded = least(times->recorded, run_ns(loop));
        times->inside = least(times->inside, between_stamps(current_thread));
    }
}

static void lower(HandlerMean *least_mean, const HandlerMean *mean) {
    if (mean->count && mean->fraction_ns < least_mean->fraction_ns) *least_mean = *mean;
}

/* Lower the least mean times of the handlers. They are measured as seldom as in a program, for what is measured
 * more often is better predicted by the processor. */
static void least_handlers(const Loop *loop, PassCosts *costs, LoopTimes *times) {
    costs->before = costs->after = costs->leave = (HandlerMean){0, 0};
    current_thread->until_measured = 0;
    for (int trial = 0; trial < TRIALS; trial++) run_ns(loop);
    lower(&times->before, &costs->before);
    lower(&times->after, &costs->after);
    lower(&times->leave, &costs->leave);
}

/* Lower the least times of a loop. 0 if nothing can be recorded. */
static int measure_round(const Loop *loop, PassCosts *costs, LoopTimes *times) {
    times->plain = least(times->plain, least_ns(loop));
    if (!function_with_mode(loop->called, ALWAYS) || !function_with_mode(loop->run, NEVER) || !events_start() ||
        !thread_get())
        return 0;
    least_recorded(loop, times);
    least_handlers(loop, costs, times);
    if (costs == &recording.costs.call) {
        function_with_mode(loop->called, COUNTED);
        times->counted = least(times->counted, least_ns(loop));
        function_with_mode(loop->called, NEVER);
        times->other = least(times->other, least_ns(loop));
    }
    events_stop();
    return 1;
}

/* The cost of a recorded loop each time round: what its function itself sees of it, and the rest, which the caller
 * sees. `own_thirds`: how many thirds of the time that a time round takes without the tracer are the function's own. */
static int measure(const Loop *loop, int own_thirds, PassCosts *costs, LoopTimes *times) {
    HandlerMean never = {0, INT64_MAX};
    *times = (LoopTimes){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, never, never, never};
    /* The machine may be busy for a while: each round measures everything, so that all least times are of quiet ones. */
    for (int round = 0; round < ROUNDS; round++)
        if (!measure_round(loop, costs, times)) return 0;
    times->plain = least(times->plain, least_ns(loop));
    if (!times->before.count || !times->after.count || !times->leave.count) return 0;
    int64_t whole = times->recorded > times->plain ? (times->recorded - times->plain) / CALLS : 0;
    int64_t own = times->plain / CALLS * own_thirds / 3;
    int64_t enter = times->inside > own ? least(times->inside - own, whole) : 0;
    costs->before = times->before;
    costs->after = times->after;
    costs->leave = times->leave;
    costs->inside_ns = enter - costs->after.fraction_ns / 256;
    costs->outside_ns = whole - enter - (costs->before.fraction_ns + costs->leave.fraction_ns) / 256;
    costs->enter_ns = enter;
    costs->exit_ns = whole - enter;
    costs->calibrated_fraction_ns = costs->before.fraction_ns + costs->after.fraction_ns + costs->leave.fraction_ns;
    current_thread->until_measured = 0;
    return 1;
}

static void measure_calls(const Loop *loop) {
    Costs *costs = &recording.costs;
    LoopTimes times;
    if (!measure(loop, 1, &costs->call, &times)) return;
    costs->plain_ns = times.plain / CALLS;
    costs->count_ns = times.counted > times.plain ? (times.counted - times.plain) / CALLS : 0;
    costs->other_ns = times.other > times.plain ? (times.other - times.plain) / CALLS / EVENTS_PER_CALL : 0;
}

static void measure_resumes(const Loop *loop) {
    LoopTimes times;
    measure(loop, 2, &recording.costs.resume, &times);
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

/* Least times of a loop with and without its lines counted, and its instructions in a time round. */
typedef struct LineTimes {
    int64_t plain, counted, instructions;
} LineTimes;

static const LineTimes NEVER_MEASURED = {INT64_MAX, INT64_MAX, 0};

/* What counting adds each time round. */
static int64_t added_ns(const LineTimes *times) {
    return times->counted > times->plain ? (times->counted - times->plain) / CALLS : 0;
}

/* Lower the least times of a loop all of whose lines are counted. */
static void measure_loop(const Loop *loop, LineTimes *times) {
    PyThreadState *state = PyThreadState_Get();
    times->plain = least(times->plain, least_ns(loop));
    if (!thread_get() || !branches_trace_begin_counting_only(state)) return;
    run_ns(loop);
    times->instructions = branches_trace_end_counting_only(state) / CALLS;
    lines_of_function(function_of_code(code_of(loop->run)));
    if (!lines_trace_begin_all(state)) return;
    times->counted = least(times->counted, least_ns(loop));
    lines_trace_end_all(state);
}

/* Lower the least times of a loop that counts its lines, and calls a function that does so too, or not. */
static void measure_frame(const Loop *run, LineTimes *times) {
    Function *called = function_with_mode(run->called, NEVER), *caller = function_with_mode(run->run, ALWAYS);
    if (!called || !caller || !events_start() || !thread_get()) return;
    lines_of_function(caller);
    caller->mode = NEVER;
    called->lines = NULL;
    times->plain = least(times->plain, least_ns(run));
    called->mode = ALWAYS;
    lines_of_function(called);
    called->mode = NEVER;
    times->counted = least(times->counted, least_ns(run));
    events_stop();
}

/* Costs of lines, of their instructions, and of invocations. Both loops have two lines a time round, and `sums` has
 * more instructions. */
static void measure_lines(const Loop *loop, const Loop *sums, const Loop *run) {
    Costs *costs = &recording.costs;
    LineTimes few = NEVER_MEASURED, many = NEVER_MEASURED, frame = NEVER_MEASURED;
    for (int round = 0; round < ROUNDS; round++) {
        measure_loop(loop, &few);
        measure_loop(sums, &many);
        measure_frame(run, &frame);
    }
    int64_t more = many.instructions - few.instructions, longer = added_ns(&many) - added_ns(&few);
    if (more > 0 && longer > 0) costs->instruction_fraction_ns = 256 * longer / more;
    int64_t of_instructions = few.instructions * costs->instruction_fraction_ns >> 8;
    costs->line_ns = added_ns(&few) > of_instructions ? (added_ns(&few) - of_instructions) / 2 : 0;
    int64_t added = added_ns(&few) + added_ns(&many), plain = (few.plain + many.plain) / CALLS;
    costs->counted_fraction = added ? 256 * plain / added : 0;
    int64_t line = costs->line_ns + (2 * costs->instruction_fraction_ns >> 8);
    costs->frame_ns = added_ns(&frame) > line ? added_ns(&frame) - line : 0;
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
        Loop resume = {PyDict_GetItemString(names, "resume"), PyDict_GetItemString(names, "generated"), calls};
        measure_calls(&run);
        measure_resumes(&resume);
        if (branches_wanted) recording.costs.branch_ns = branch_ns(&loop);
        int counted = lines_wanted && function_with_mode(loop.run, ALWAYS);
#if PY_VERSION_HEX >= 0x030C0000
        if (counted) recording.costs.line_ns = line_ns(&loop);
#else
        Loop sums = {PyDict_GetItemString(names, "sums"), recorded, calls};
        if (counted && function_with_mode(sums.run, ALWAYS)) measure_lines(&loop, &sums, &run);
#endif
        if (counted && !branches_wanted) /* much the same work */
            recording.costs.branch_ns = recording.costs.line_ns + (recording.costs.instruction_fraction_ns >> 8);
    }
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(calls);
    Py_XDECREF(names);
    if (current_thread) current_thread->overhead_ns = current_thread->counting_ns = 0;
}

/* Value of a hexadecimal digit; -1 for any other character. */
static int hex_digit(char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

int calibration_take(PyObject *settings) {
    PyObject *setting = PyDict_GetItemString(settings, "PERFLAW_TARGET_COSTS");
    Py_ssize_t length = 0;
    const char *digits = setting ? PyUnicode_AsUTF8AndSize(setting, &length) : NULL;
    Costs costs;
    unsigned char *bytes = (unsigned char *)&costs;
    PyErr_Clear();
    if (!digits || length != 2 * (Py_ssize_t)sizeof costs) return 0;
    for (size_t at = 0; at < sizeof costs; at++) {
        int high = hex_digit(digits[2 * at]), low = hex_digit(digits[2 * at + 1]);
        if (high < 0 || low < 0) return 0;
        bytes[at] = (unsigned char)(high << 4 | low);
    }
    PyCodeObject *code = PyCode_NewEmpty("perflaw", "calibration", 1);
    if (code) function_of_code(code); /* learns how functions are found quickly, as the calibration does */
    Py_XDECREF(code);
    PyErr_Clear();
    recording.costs = costs;
    return 1;
}
