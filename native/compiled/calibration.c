#include "calibration.h"

#include "branches.h"
#include "core/base/trials.h"
#include "definitions.h"
#include "entry.h"
#include "functions.h"

/* Trials are short, so that some fit between interruptions, and many, so that they outlast what a neighbour does for a moment:
 * about a millisecond in all. */
enum { CALLS = 200, TRIALS = 100 };
/* Further kinds of calls: trials of each; a recursion makes 2 fib(DEPTH + 1) - 1 calls; multiplications that wait for one another. */
enum { KIND_TRIALS = 12, DEPTH = 14, CALLS_OF_RECURSION = 1219, WAITING_CALLS = 500, MULTIPLICATIONS = 32, COLD_CALLS = 200, EMPTY_CALLS = 2000 };
enum { COLD_LINES = 768, CACHE_LINE = 64, COLD_BRANCHES = 32, PICOSECONDS = 1000 };

/* Call an empty function that is injected, or the hooks of one as the program would: both at one depth of the stack. Readers
 * drop its records by their number. */
__attribute__((noinline)) static void call(void *function) {
    if (recording.empty) {
        recording.empty();
        __asm__ volatile("" ::: "memory"); /* the call must not become a jump */
        return;
    }
    __cyg_profile_func_enter(function, NULL);
    __asm__ volatile("" ::: "memory");
    __cyg_profile_func_exit(function, NULL);
    __asm__ volatile("" ::: "memory"); /* the hook's call must not become a jump */
}

/* Mean time between the two stamps of a call, over the last calls in the ring. A call in which a metric changed is left
 * out: it was interrupted, or has one more record. */
static int64_t between_stamps(const Thread *thread) {
    const Event *records = thread->ring.records;
    int64_t sum = 0, calls = 0, ended = -1;
    for (uint64_t at = thread->ring.position; at && calls < CALLS; at--) {
        const Event *record = &records[(at - 1) & thread->ring.mask];
        if (record->kind == EVENT_ENTER && ended >= 0) {
            sum += ended - record->value;
            calls++;
        }
        ended = record->kind == EVENT_EXIT ? record->value : -1;
    }
    return calls ? sum / calls : 0;
}

/* Time that one call takes: the shortest trial, as neighbours and interruptions only lengthen one. */
static int64_t call_ns(void *function) {
    int64_t shortest = INT64_MAX;
    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t begun = clock_ns(&recording.clock);
        for (int at = 0; at < CALLS; at++) call(function);
        int64_t trial_ns = clock_ns(&recording.clock) - begun;
        if (trial_ns < shortest) shortest = trial_ns;
    }
    return (shortest + CALLS / 2) / CALLS;
}

static long (*volatile step)(long); /* calibration_body, or the same recorded */

__attribute__((noinline)) long calibration_body(long n) {
    if (n >= 0) return n < 2 ? n : step(n - 1) + step(n - 2);
    for (int at = 0; at < MULTIPLICATIONS; at++) {
        n *= 0x5851f42d4c957f2d;
        __asm__ volatile("" : "+r"(n)); /* each waits for the one before */
    }
    return n;
}

static long hooked_body(long n) {
    __cyg_profile_func_enter((void *)calibrate, NULL);
    long result = calibration_body(n);
    __cyg_profile_func_exit((void *)calibrate, NULL);
    return result;
}

/* The kinds of calls of which programs are mixtures. What recording adds to a call depends on the code around it. */

/* Calls of a recursion, each of which does little. */
static void recurse(const Thread *thread) {
    (void)thread;
    step(DEPTH);
}

/* Calls that mostly wait for their own results. The processor does our work meanwhile. */
static void wait_for_results(const Thread *thread) {
    (void)thread;
    for (long at = 0, n = -1; at < WAITING_CALLS; at++) n = step(n) | INT64_MIN;
}

/* Calls before which other code has filled the nearest cache and the processor's memory of branches. */
static void call_cold(const Thread *thread) {
    const volatile Event *other = thread->ring.records;
    uint64_t number = 1;
    for (int at = 0; at < COLD_CALLS; at++) {
        for (int line = 0; line < COLD_LINES; line++) (void)other[line * (CACHE_LINE / (int)sizeof *other)].value;
        for (int branch = 0; branch < COLD_BRANCHES; branch++) {
            number = number * 0x5851f42d4c957f2d + 1;
            if (number >> 63) __asm__ volatile("" : "+r"(number));
            else __asm__ volatile("nop" : "+r"(number));
        }
        step(1);
    }
}

__attribute__((noinline)) static void do_nothing(void) { __asm__ volatile("" ::: "memory"); }

/* Calls that do nothing at all, several in a row. */
static void call_nothing(const Thread *thread) {
    (void)thread;
    for (int at = 0; at < EMPTY_CALLS; at += 4) {
        do_nothing();
        do_nothing();
        do_nothing();
        do_nothing();
    }
}

static int64_t passed_ns(void (*calls)(const Thread *), const Thread *thread, long (*function)(long)) {
    int64_t begun = clock_ns(&recording.clock);
    step = function;
    calls(thread);
    return clock_ns(&recording.clock) - begun;
}

/* What recording adds to one of these calls, and what it takes without by the shortest trial, ps. */
static int64_t added_ps(void (*calls)(const Thread *), int count, const Thread *thread, int64_t *plain_ps) {
    long (*recorded)(long) = recording.around_body ? recording.around_body : hooked_body;
    int64_t with[KIND_TRIALS], without[KIND_TRIALS], shortest = INT64_MAX;
    for (int trial = 0; trial < KIND_TRIALS; trial++) {
        without[trial] = passed_ns(calls, thread, calibration_body);
        with[trial] = passed_ns(calls, thread, recorded);
        if (without[trial] < shortest) shortest = without[trial];
    }
    *plain_ps = shortest * PICOSECONDS / count;
    return trials_difference(without, with, KIND_TRIALS) * PICOSECONDS / count;
}

static int64_t plain_ps, recursion_ps, waiting_ps, cold_ps; /* a plain call; what recording adds */
static int64_t frida_call_ns; /* CPU time of a call that Frida tells of, the mean */

static void measure_cpu(const Thread *thread) {
    int64_t body_ps;
    added_ps(call_nothing, EMPTY_CALLS, thread, &plain_ps);
    if (recording.by_frida) return;
    recursion_ps = added_ps(recurse, CALLS_OF_RECURSION, thread, &body_ps);
    waiting_ps = added_ps(wait_for_results, WAITING_CALLS, thread, &body_ps);
    cold_ps = added_ps(call_cold, COLD_CALLS, thread, &body_ps);
}

static void tell_cpu(void) {
    define_cpu("call_ps", plain_ps);
    if (recording.by_frida) {
        define_cpu("recorded_call", frida_call_ns);
        return;
    }
    define_cpu("added_ps_recursion", recursion_ps);
    define_cpu("added_ps_waiting", waiting_ps);
    define_cpu("added_ps_cold", cold_ps);
}

void calibrate(Thread *thread) {
    /* A forked child is within an event, where Frida tells of no other call. All is as in its parent. */
    if (recording.by_frida && recording.enter_ns) {
        tell_cpu();
        return;
    }
    void *function = recording.empty ? (void *)recording.empty : (void *)calibrate;
    recording.calibrated = function;
    KnownFunction *known = function_find(thread, function);
    recording.calibrated = NULL;
    if (!known || thread->stack_low > (uintptr_t)&known || thread->stack_high < (uintptr_t)&known) return;
    known->number = NOT_SELECTED;
    int64_t skipped = call_ns(function);
    known->number = CALIBRATION;
    known->countdown = INT64_MAX;
    int64_t cpu = cpu_spent_ns(), whole = call_ns(function);
    frida_call_ns = (cpu_spent_ns() - cpu + CALLS * TRIALS / 2) / (CALLS * TRIALS);
    int64_t inside = between_stamps(thread);
    measure_cpu(thread);
    tell_cpu();
    recording.enter_ns = inside < whole ? inside : whole / 2;
    recording.exit_ns = whole - recording.enter_ns;
    recording.skip_ns = skipped;
    branches_calibrate(thread);
    thread->overhead_ns = 0;
}
