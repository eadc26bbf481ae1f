#include "budget.h"

enum { ENOUGH_CALLS = 16, MAX_LEAF_CALLS = 64 };
enum { LEAST_COUNTED = 32 }; /* calls between two that are timed */
enum { MOST_LEAST = 8 };     /* times the least own time that one call may add */

int budget_is_kept(void) {
    const Settings *settings = &recording.settings;
    return settings->budget > 1 && !*settings->select && !settings->branches && !settings->lines && !settings->paths &&
           !settings->fake_clock;
}

/* Whether the tracer has taken more of this thread's time than the budget allows. What the thread waited for the recorder
 * is part of what the tracer takes; other time off the CPU does not count. */
static int is_exceeded(const Thread *thread) {
    int64_t passed = cpu_spent_ns() - thread->cpu.spent + thread->waited_ns - thread->waited_before;
    int64_t taken = thread->overhead_ns - thread->overhead_before - (thread->off_ns - thread->off_before);
    return (double)taken * recording.settings.budget > (double)passed * (recording.settings.budget - 1);
}

/* The least own time of a call of which timing it costs no more than the budget allows. */
static double least_own_ns(void) {
    return (double)(recording.costs.call.enter_ns + recording.costs.call.exit_ns) / (recording.settings.budget - 1);
}

/* Whether a function's calls take less than that; to time one again that is counted, they must take twice as long. */
static int is_too_dear(const Function *function) {
    return (double)function->leaf_ns / function->leaf_calls < least_own_ns() * (function->mode == COUNTED ? 2 : 1);
}

/* Time all calls of a function for the rest of the run. */
static void give_up_counting(Function *function) {
    function->may_be_counted = 0;
    if (function->mode == COUNTED) function->mode = ALWAYS;
}

void budget_draw(Thread *thread, Function *function) {
    /* at random, so that calls which repeat a pattern are not timed at the same place of it each time */
    function->until_timed = LEAST_COUNTED + (int32_t)(skips_random(&thread->random_state) % (2 * LEAST_COUNTED));
}

void budget_called_from(Function *caller) {
    if (caller->mode == COUNTED) give_up_counting(caller);
}

/* Add the time of a call. One that was interrupted must not make up for all others. */
static void add_leaf(Function *function, int64_t ns) {
    double most = MOST_LEAST * least_own_ns();
    if (function->leaf_calls >= MAX_LEAF_CALLS) {
        function->leaf_calls /= 2;
        function->leaf_ns /= 2;
    }
    function->leaf_calls++;
    function->leaf_ns += (double)ns < most ? ns : (int64_t)most;
}

void budget_end_watch(Thread *thread, const Frame *frame, int64_t stamp) {
    Function *function = thread->watched;
    thread->watched = NULL;
    if (frame != thread->watched_frame) {
        give_up_counting(function);
        return;
    }
    add_leaf(function, stamp - thread->watched_stamp);
    if (function->leaf_calls < ENOUGH_CALLS) return;
    if (function->mode == COUNTED) {
        if (!is_too_dear(function)) function->mode = ALWAYS;
    } else if (is_too_dear(function) && is_exceeded(thread)) {
        function->mode = COUNTED;
        budget_draw(thread, function);
    }
}
