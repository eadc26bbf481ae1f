#include "budget.h"

enum { ENOUGH_CALLS = 16 };

int budget_is_kept(void) {
    const Settings *settings = &recording.settings;
    return settings->budget > 1 && !*settings->select && !settings->branches && !settings->lines && !settings->paths &&
           !settings->fake_clock;
}

/* Whether the tracer has taken more of this thread's CPU time than the budget allows. What the thread waited for the
 * recorder is part of what the tracer takes, and other programs are not. */
static int is_exceeded(const Thread *thread) {
    int64_t passed = cpu_spent_ns() - thread->cpu.spent;
    return (double)thread->overhead_ns * recording.settings.budget > (double)passed * (recording.settings.budget - 1);
}

/* Whether timing a call costs more than the budget allows of its own time. */
static int is_too_dear(const Function *function) {
    double own_ns = (double)function->leaf_ns / function->leaf_calls;
    int64_t cost_ns = recording.costs.enter_ns + recording.costs.exit_ns;
    return (double)cost_ns > own_ns * (recording.settings.budget - 1);
}

void budget_end_watch(Thread *thread, const Frame *frame, int64_t stamp) {
    Function *function = thread->watched;
    thread->watched = NULL;
    if (frame != thread->watched_frame) {
        function->may_be_counted = 0;
        return;
    }
    function->leaf_calls++;
    function->leaf_ns += stamp - thread->watched_stamp;
    if (function->leaf_calls >= ENOUGH_CALLS && is_too_dear(function) && is_exceeded(thread))
        function->mode = COUNTED;
}
