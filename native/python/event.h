/* The hot path: what happens at every event of a recorded function. */
#ifndef PERFLAW_PYTHON_EVENT_H
#define PERFLAW_PYTHON_EVENT_H

#include "branches.h"
#include "greenlets.h"
#include "metrics.h"
#include "tracer.h"

static inline void event_write(Thread *thread, int64_t value, int64_t frame, int32_t code, int32_t site, int32_t key, int32_t kind) {
    if (thread->ring.position == thread->ring.limit && !thread_make_room(thread)) {
        thread->lost++;
        return;
    }
    Event *event = ring_next(&thread->ring);
    event->value = value;
    event->frame = frame;
    event->code = code;
    event->site = site;
    event->key = key;
    event->kind = kind;
    ring_publish(&thread->ring);
}

/* Another thread had the interpreter since this one wrote last. */
void event_turn(Thread *thread);

/* The clock without what was the tracer's own. */
static inline int64_t event_stamp(Thread *thread, int64_t now) {
    if (cpu_may_be_off(&thread->cpu, now)) now = metrics_tell_cpu(thread, now);
    int64_t stamp = now - thread->taken;
    if (stamp < thread->last) stamp = thread->last;
    thread->last = stamp;
    if (recorder.turn != thread) event_turn(thread);
    if (metrics_wanted) metrics_tell(thread);
    return stamp;
}

/* Bytecode offset in the caller, if the caller is the recorded frame that is open innermost. */
static inline int32_t event_site(const Thread *thread, Frame *linked) {
    if (!thread->height) return -1;
    const Frame *top = thread->open[thread->height - 1];
    return linked == top || frame_visible(linked) == top ? frame_offset(top) : -1;
}

/* Whether a call is recorded, which for functions of libraries depends on who calls. */
static inline int event_wanted(const Function *function, Frame *linked) {
    if (function->mode != FROM_OWN) return function->mode;
    Frame *caller = frame_visible(linked);
    const Function *calling = caller ? function_of(caller) : NULL;
    return calling && calling->own;
}

static inline int event_push(Thread *thread, Frame *frame) {
    if (thread->height == thread->room && !thread_grow(thread)) return 0;
    thread->open[thread->height++] = frame;
    return 1;
}

/* The first event of a function in this process. That took time, which has been taken out: the event is now. */
static inline int event_define(Function *function, int64_t *now) {
    int32_t number = function_define(function);
    *now = clock_ns(&recorder.clock);
    return number != 0;
}

/* A function begins; linked: the frame it is called from, which need not be a person's. Returns whether it is recorded. */
static inline int event_enter(Thread *thread, Function *function, Frame *frame, Frame *linked, int64_t now) {
    if (function->process != recorder.process && !event_define(function, &now)) return 0;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = event_stamp(thread, now);
    int32_t site = event_site(thread, linked), key = -1;
    if (!event_push(thread, frame)) return 0;
    int read = 0;
    if (--function->countdown < 0) key = sampling_enter(thread, function, &read);
    event_write(thread, stamp, (int64_t)(intptr_t)frame, function->number, site, key, EVENT_ENTER);
    if (read) sampling_read(thread, function, frame);
    else if (branches_wanted) branches_forget(frame);
    thread->taken += recorder.costs.enter_ns;
    return 1;
}

/* A generator or coroutine goes on. Returns whether it is recorded. */
static inline int event_resume(Thread *thread, Function *function, Frame *frame, Frame *linked, int64_t now) {
    if (function->process != recorder.process && !event_define(function, &now)) return 0;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = event_stamp(thread, now);
    int32_t site = event_site(thread, linked);
    if (!event_push(thread, frame)) return 0;
    event_write(thread, stamp, (int64_t)(intptr_t)frame, function->number, site, -1, EVENT_RESUME);
    thread->taken += recorder.costs.enter_ns;
    return 1;
}

/* Bring the frame to the top of the open ones: what stood above it died without an event. 0 if it is not open. */
int event_uncover(Thread *thread, const Frame *frame);

/* A function returns, raises or suspends itself (kind). Returns whether it was recorded. */
static inline int event_leave(Thread *thread, int kind, const Frame *frame, int64_t now) {
    if (greenlets_in_use) greenlets_follow(thread);
    if (!thread->height) return 0;
    if (thread->open[thread->height - 1] != frame && !event_uncover(thread, frame)) return 0;
    thread->height--;
    int64_t stamp = event_stamp(thread, now);
    if (branches_wanted && kind == EVENT_EXIT) branches_tell(thread, frame);
    event_write(thread, stamp, (int64_t)(intptr_t)frame, 1, -1, -1, kind);
    thread->taken += recorder.costs.exit_ns;
    return 1;
}

#endif
