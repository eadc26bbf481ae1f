#include "calibration.h"

#include "functions.h"
#include "invocations.h"

enum { CALLS = 400, TRIALS = 15 };

static void sort(int64_t *trials) {
    for (int at = 1; at < TRIALS; at++)
        for (int down = at; down && trials[down] < trials[down - 1]; down--) {
            int64_t larger = trials[down - 1];
            trials[down - 1] = trials[down];
            trials[down] = larger;
        }
}

/* Call an empty function as the program would. Readers drop its records by their number. */
__attribute__((noinline)) static void call(Thread *thread, const void *function) {
    uintptr_t stack = (uintptr_t)__builtin_dwarf_cfa();
    invocation_enter(thread, function, NULL, stack);
    __asm__ volatile("" ::: "memory");
    invocation_exit(thread, function, NULL, function, stack);
}

/* Mean time between the two stamps of a call, over the last calls in the ring. */
static int64_t between_stamps(const Thread *thread) {
    const Event *records = thread->ring.records;
    int64_t sum = 0, calls = 0;
    for (uint64_t at = thread->ring.position; at >= 2 && calls < CALLS; at -= 2, calls++)
        sum += records[(at - 1) & thread->ring.mask].value - records[(at - 2) & thread->ring.mask].value;
    return calls ? sum / calls : 0;
}

/* Median over the trials of the time that one call takes. */
static int64_t median_call_ns(Thread *thread, const void *function) {
    int64_t trials[TRIALS];
    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t begun = clock_ns(&recording.clock);
        for (int at = 0; at < CALLS; at++) call(thread, function);
        trials[trial] = clock_ns(&recording.clock) - begun;
    }
    sort(trials);
    return (trials[TRIALS / 2] + CALLS / 2) / CALLS;
}

void calibrate(Thread *thread) {
    const void *function = recording.calibrated = (void *)calibrate;
    KnownFunction *known = function_find(thread, function);
    recording.calibrated = NULL;
    if (!known || thread->stack_low > (uintptr_t)&known || thread->stack_high < (uintptr_t)&known) return;
    known->number = NOT_SELECTED;
    int64_t skipped = median_call_ns(thread, function);
    known->number = CALIBRATION;
    known->countdown = INT64_MAX;
    int64_t whole = median_call_ns(thread, function), inside = between_stamps(thread);
    recording.enter_ns = inside < whole ? inside : whole / 2;
    recording.exit_ns = whole - recording.enter_ns;
    recording.skip_ns = skipped;
    thread->overhead_ns = 0;
}
