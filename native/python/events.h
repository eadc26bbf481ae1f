/* The hot path: what happens at every event of a recorded function.
 *
 * A frame is called `linked` below if it is the frame that the interpreter has linked as the caller, which need not
 * be one of the program's own. Ownership: the thread's. Threads: the caller holds the GIL and passes its own thread.
 * Cost: 30 ns a recorded call, of which the two readings of the clock are 16. */
#ifndef PERFLAW_PYTHON_EVENTS_H
#define PERFLAW_PYTHON_EVENTS_H

#include "python/counts/branches.h"
#include "budget.h"
#include "costs.h"
#include "functions.h"
#include "greenlets.h"
#include "recording.h"
#include "sampling.h"
#include "stamps.h"

/* In a program that was attached to, write that the frames of this one and its callers were entered before. The thread
 * is at its first event. */
void event_open_earlier(Thread *thread, Frame *innermost);

#if PY_VERSION_HEX < 0x030C0000
/* Close the innermost open frame, entered before the recording, if it is no caller of what is called now. */
void event_close_earlier(Thread *thread, Frame *linked);
#endif

/* Offset of the call in the caller's bytecode, if the caller is the innermost open recorded frame; else -1. */
static inline int32_t event_site(Thread *thread, Frame *linked) {
#if PY_VERSION_HEX < 0x030C0000
    if (thread->height <= thread->earlier) event_close_earlier(thread, linked);
#endif
    if (!thread->height) return -1;
    const Frame *top = thread->open[thread->height - 1].frame;
    Frame *caller = linked == top ? linked : frame_visible(linked);
    if (caller == top) return frame_offset(top);
    Function *calling = caller ? function_of(caller) : NULL;
    if (calling) budget_called_from(calling);
    return -1;
}

/* Which library calls below the innermost open frame are recorded. */
static inline enum LibraryCalls event_library_calls(const Thread *thread) {
    return thread->height ? thread->open[thread->height - 1].library_calls : ALL_CALLS;
}

/* Whether a call is recorded, or part of an import. */
static inline int event_is_wanted(const Thread *thread, const Function *function) {
    return !function->is_left_out_in_imports || event_library_calls(thread) != NO_CALLS;
}

static inline int event_push(Thread *thread, const Function *function, Frame *frame) {
    if (thread->height == thread->capacity && !thread_grow(thread)) return 0;
    enum LibraryCalls below = ALL_CALLS;
    if (function->is_body) below = function->is_own ? OWN_CALLS : NO_CALLS;
    else if (function->is_left_out_in_imports && event_library_calls(thread) == OWN_CALLS) below = NO_CALLS;
    thread->open[thread->height++] = (OpenFrame){frame, below};
    return 1;
}

/* The first event of a function in this process. That takes time, which is left out: the event is at *now, which
 * moves on. */
static inline int event_define(Thread *thread, Function *function, int64_t *now) {
    int32_t number = function_define(function);
    if (number && !function->is_own) thread_write(thread, thread->last_stamp, 0, number, -1, -1, EVENT_LIBRARY);
    if (number && function->is_observed) thread_write(thread, thread->last_stamp, 0, number, -1, -1, EVENT_OBSERVE);
    *now = clock_ns(&recording.clock);
    return number != 0;
}

/* A function begins. Gives whether it is recorded. */
static inline int event_enter(Thread *thread, Function *function, Frame *frame, Frame *linked, int64_t now,
                              MeasuredEvent measured) {
    if (function->process != recording.process && !event_define(thread, function, &now)) return 0;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = thread_stamp(thread, now);
    budget_next_event(thread, NULL, stamp);
    int32_t site = event_site(thread, linked), key = -1;
    if (!event_push(thread, function, frame)) return 0;
    int is_looked_at = --function->countdown < 0, read = 0;
    int is_first = thread->observation && sampling_is_first(thread, function);
    /* What a handler takes that seldom runs is measured each time: it stands for many calls, or takes much longer. */
    int is_measured = is_looked_at || is_first || function->mode == COUNTED;
    thread->overhead_depth += is_measured;
    if (is_looked_at) key = sampling_enter(thread, function, &read);
    thread_write(thread, stamp, (int64_t)(intptr_t)frame, function->number, site, key, EVENT_ENTER);
    if (function->is_observed && key >= 0) sampling_observe(thread, now);
    if (read || is_first) sampling_read(thread, function, frame, !read);
    else if (branches_wanted) counting_forget(frame);
    if (!is_looked_at && !is_first && measured_is_plain(thread, measured))
        costs_add_enter(&recording.costs.call, now - measured.begun, clock_ns(&recording.clock) - now);
    if (measured.begun || function->mode == COUNTED) budget_watch(thread, function, frame, stamp);
    thread->overhead_depth -= is_measured;
    if (is_measured) overhead_since(thread, stamp, recording.costs.call.inside_ns);
    else thread->overhead_ns += recording.costs.call.enter_ns;
    return 1;
}

/* A generator or coroutine goes on. Gives whether it is recorded. */
static inline int event_resume(Thread *thread, Function *function, Frame *frame, Frame *linked, int64_t now,
                               MeasuredEvent measured) {
    if (function->process != recording.process && !event_define(thread, function, &now)) return 0;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = thread_stamp(thread, now);
    budget_next_event(thread, NULL, stamp);
    int32_t site = event_site(thread, linked);
    if (!event_push(thread, function, frame)) return 0;
    thread_write(thread, stamp, (int64_t)(intptr_t)frame, function->number, site, -1, EVENT_RESUME);
    if (function->is_observed) sampling_observe(thread, now);
    PassCosts *costs = &recording.costs.resume;
    if (measured_is_plain(thread, measured)) costs_add_enter(costs, now - measured.begun, clock_ns(&recording.clock) - now);
    thread->overhead_ns += costs->enter_ns;
    return 1;
}

/* A call of a function that is only counted. */
static inline void event_count(Thread *thread, Function *function, Frame *linked) {
    int64_t now;
    if (function->process != recording.process && !event_define(thread, function, &now)) return;
    if (greenlets_in_use) greenlets_follow(thread);
    budget_next_event(thread, NULL, 0);
    thread_write(thread, 0, 0, function->number, event_site(thread, linked), -1, EVENT_COUNT);
    thread->overhead_ns += recording.costs.count_ns;
}

/* Make a frame the innermost open one: those above it have died without an event. 0 if it is not open. */
int event_uncover(Thread *thread, const Frame *frame);

/* Whether a suspended frame is that of an async generator that hands a value to its consumer. What it awaits suspends it
 * as well, and passes other objects on. */
static inline int event_hands(const PyCodeObject *code, PyObject *yielded) {
    return code->co_flags & CO_ASYNC_GENERATOR && !strcmp(Py_TYPE(yielded)->tp_name, "async_generator_wrapped_value");
}

/* A function returns, raises or suspends itself (kind); `hands`: to hand a value to its consumer. Gives whether it was
 * recorded. */
static inline int event_leave(Thread *thread, int kind, int hands, const Frame *frame, int64_t now) {
    if (greenlets_in_use) greenlets_follow(thread);
    if (!thread->height) return 0;
    if (thread->open[thread->height - 1].frame != frame && !event_uncover(thread, frame)) return 0;
    thread->height--;
    if (thread->height < thread->observed_height) thread->observation = thread->observed_height = 0;
    MeasuredEvent measured = measured_begin(thread);
    int64_t stamp = thread_stamp(thread, now);
    budget_next_event(thread, frame, stamp);
    if (branches_wanted && kind == EVENT_EXIT) counting_write(thread, frame);
    thread_write(thread, stamp, (int64_t)(intptr_t)frame, 1, hands ? 0 : -1, -1, kind);
    PassCosts *costs = kind == EVENT_YIELD ? &recording.costs.resume : &recording.costs.call;
    if (measured_is_plain(thread, measured)) costs_add_leave(costs, clock_ns(&recording.clock) - now);
    thread->overhead_ns += costs->exit_ns;
    return 1;
}

#endif
