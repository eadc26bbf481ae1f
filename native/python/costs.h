/* What an event costs the program, which stamps leave out: what lies outside of the tracer's handlers is calibrated
 * (calibration.c), what they take themselves is measured at some events all the time. In a program the handlers find
 * colder caches and worse predicted branches than in a loop of empty calls, and a busy machine slows them down: they
 * take 20 ns in such a loop and 50 to 100 ns in real programs.
 *
 * Ownership: the one Recording. Threads: the caller holds the GIL and passes its own thread. Cost: a decrement an
 * event, three readings of the clock at one event in 61. */
#ifndef PERFLAW_PYTHON_COSTS_H
#define PERFLAW_PYTHON_COSTS_H

#include "recording.h"

/* Events between two that are measured: odd, so that calls and returns that alternate are both measured. */
enum { MEASURED_EVENTS = 61 };

/* An event that is measured; begun: when its handler began, 0 if it is not measured. */
typedef struct MeasuredEvent {
    int64_t begun, overhead;
} MeasuredEvent;

/* Handlers took this long: before the stamp of the beginning, after it, and at the end. */
void costs_add_enter(PassCosts *costs, int64_t before_ns, int64_t after_ns);
void costs_add_leave(PassCosts *costs, int64_t ns);

static inline MeasuredEvent measured_begin(Thread *thread) {
    if (--thread->until_measured > 0) return (MeasuredEvent){0, 0};
    thread->until_measured = MEASURED_EVENTS;
    return (MeasuredEvent){clock_ns(&recording.clock), thread->overhead_ns};
}

/* Whether nothing beside the event itself took time meanwhile: that is left out on its own. */
static inline int measured_is_plain(const Thread *thread, MeasuredEvent event) {
    return event.begun && thread->overhead_ns == event.overhead;
}

#endif
