#include "calibration.h"

#include "branches.h"
#include "definitions.h"
#include "entry.h"
#include "functions.h"

/* Trials are short, so that some fit between interruptions, and many, so that they outlast what a neighbour does for a moment:
 * about a millisecond in all. */
enum { CALLS = 200, TRIALS = 100 };

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

static int64_t plain_call_ns, recorded_call_ns;
__attribute__((noinline)) static void plain(void) { __asm__ volatile("" ::: "memory"); }

/* What CPU time calls take now: the mean, with whatever else the machine does, as it is for the program's own calls. The shortest
 * trial is a quiet moment's, which is right for stamps, where too little is a small error and too much hides a function. */
static void measure_cpu(int64_t recorded_ns) {
    int64_t begun = cpu_spent_ns();
    for (int at = 0; at < CALLS * TRIALS; at++) plain();
    plain_call_ns = (cpu_spent_ns() - begun + CALLS * TRIALS / 2) / (CALLS * TRIALS);
    recorded_call_ns = (recorded_ns + CALLS * TRIALS / 2) / (CALLS * TRIALS);
}

static void tell_cpu(void) {
    define_cpu("call", plain_call_ns);
    define_cpu("recorded_call", recorded_call_ns);
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
    cpu = cpu_spent_ns() - cpu;
    int64_t inside = between_stamps(thread);
    measure_cpu(cpu);
    tell_cpu();
    recording.enter_ns = inside < whole ? inside : whole / 2;
    recording.exit_ns = whole - recording.enter_ns;
    recording.skip_ns = skipped;
    branches_calibrate(thread);
    thread->overhead_ns = 0;
}
