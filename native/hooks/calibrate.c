/* What the hooks cost the program beyond what lies between an invocation's two stamps, measured in this process. */
#include "hooks.h"

enum { CALLS = 400, TRIALS = 15 };

static void sort(int64_t *trials) {
    for (int at = 1; at < TRIALS; at++)
        for (int down = at; down && trials[down] < trials[down - 1]; down--) {
            int64_t larger = trials[down - 1];
            trials[down - 1] = trials[down];
            trials[down] = larger;
        }
}

/* Calls of nothing, as the program would make them. Their number is dropped by readers. */
__attribute__((noinline)) static void call(Thread *thread, void *function) {
    uintptr_t stack = (uintptr_t)__builtin_dwarf_cfa();
    hooks_enter(thread, function, NULL, stack);
    __asm__ volatile("" ::: "memory");
    hooks_exit(thread, function, NULL, function, stack);
}

/* Mean time between the two stamps of a call, of the last that stand in the ring. */
static int64_t between_stamps(const Thread *thread) {
    const Event *records = thread->ring.records;
    int64_t sum = 0, calls = 0;
    for (uint64_t at = thread->ring.position; at >= 2 && calls < CALLS; at -= 2, calls++)
        sum += records[(at - 1) & thread->ring.mask].value - records[(at - 2) & thread->ring.mask].value;
    return calls ? sum / calls : 0;
}

static int64_t median_of_calls(Thread *thread, void *function) {
    int64_t trials[TRIALS];
    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t begun = clock_ns(&hooks.clock);
        for (int at = 0; at < CALLS; at++) call(thread, function);
        trials[trial] = clock_ns(&hooks.clock) - begun;
    }
    sort(trials);
    return (trials[TRIALS / 2] + CALLS / 2) / CALLS;
}

void calibrate(Thread *thread) {
    void *function = (void *)calibrate;
    Known *known = known_find(thread, function);
    if (!known || thread->low > (uintptr_t)&known || thread->high < (uintptr_t)&known) return;
    known->number = LEFT_OUT;
    int64_t skipped = median_of_calls(thread, function);
    known->number = CALIBRATION;
    known->countdown = INT64_MAX;
    int64_t whole = median_of_calls(thread, function), inside = between_stamps(thread);
    hooks.enter_ns = inside < whole ? inside : whole / 2;
    hooks.exit_ns = whole - hooks.enter_ns;
    hooks.skip_ns = skipped;
    thread->taken = 0;
}
