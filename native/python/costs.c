#include "costs.h"

/* Longer handlers were interrupted: longer than this, and than so many times the mean of some. */
enum { MAX_HANDLER_NS = 1000, MAX_TIMES_MEAN = 4, SOME = 8 };
enum { WINDOW = 256, FRACTION = 256 };
/* Code that the interpreter executes for a traced call and not for a plain one, in parts of what the handlers execute. */
enum { OTHER_CODE = 2 };

/* The mean of all while they are few, then of the last ones: a program's phases differ. */
static void add(HandlerMean *mean, int64_t ns) {
    int64_t most = MAX_HANDLER_NS;
    if (ns < 0) return;
    if (mean->count >= SOME && mean->fraction_ns < most * FRACTION / MAX_TIMES_MEAN)
        most = (mean->fraction_ns * MAX_TIMES_MEAN) / FRACTION;
    if (ns > most) ns = most;
    if (mean->count < WINDOW) mean->count++;
    mean->fraction_ns += (ns * FRACTION - mean->fraction_ns) / mean->count;
}

static int64_t rounded(int64_t fraction) { return fraction > 0 ? (fraction + FRACTION / 2) / FRACTION : 0; }

/* The calibration takes the least times, and no program's handlers are quicker. Where they are, something slowed the
 * machine down during the calibration, and what lies outside of the handlers took as much less, too. Where they are
 * slower, their code and data were not in the caches. Then the interpreter's code that a traced call takes in addition
 * is not there either: of that there is more (OTHER_CODE). A generator that goes on has no such code: items of constant
 * work came out 2 to 10 ns long where they take 28. */
static void update(PassCosts *costs) {
    int64_t calibrated = costs->calibrated_fraction_ns, inside = costs->inside_ns, outside = costs->outside_ns;
    if (!calibrated) return;
    int64_t handlers = costs->before.fraction_ns + costs->after.fraction_ns + costs->leave.fraction_ns;
    int64_t speed = handlers < calibrated ? handlers * FRACTION / calibrated : FRACTION;
    int64_t other_code = costs == &recording.costs.call ? OTHER_CODE : 0;
    int64_t colder = handlers > calibrated ? (handlers - calibrated) * other_code : 0;
    costs->enter_ns = rounded(inside * speed + costs->after.fraction_ns);
    costs->exit_ns = rounded(outside * speed + colder + costs->before.fraction_ns + costs->leave.fraction_ns);
}

void costs_add_enter(PassCosts *costs, int64_t before_ns, int64_t after_ns) {
    add(&costs->before, before_ns);
    add(&costs->after, after_ns);
    update(costs);
}

void costs_add_leave(PassCosts *costs, int64_t ns) {
    add(&costs->leave, ns);
    update(costs);
}
