#include "costs.h"

enum { MAX_HANDLER_NS = 1000 }; /* longer ones were interrupted */
enum { WINDOW = 256, FRACTION = 256 };

/* The mean of all while they are few, then of the last ones: a program's phases differ. */
static void add(HandlerMean *mean, int64_t ns) {
    if (ns < 0) return;
    if (ns > MAX_HANDLER_NS) ns = MAX_HANDLER_NS;
    if (mean->count < WINDOW) mean->count++;
    mean->fraction_ns += (ns * FRACTION - mean->fraction_ns) / mean->count;
}

static int64_t rounded(int64_t fraction) { return fraction > 0 ? (fraction + FRACTION / 2) / FRACTION : 0; }

static void update(void) {
    Costs *costs = &recording.costs;
    if (!costs->calibrated) return;
    costs->enter_ns = rounded(costs->inside_ns * FRACTION + costs->after.fraction_ns);
    costs->exit_ns = rounded(costs->outside_ns * FRACTION + costs->before.fraction_ns + costs->leave.fraction_ns);
}

void costs_add_enter(int64_t before_ns, int64_t after_ns) {
    add(&recording.costs.before, before_ns);
    add(&recording.costs.after, after_ns);
    update();
}

void costs_add_leave(int64_t ns) {
    add(&recording.costs.leave, ns);
    update();
}
