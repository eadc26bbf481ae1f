/* Stamps of events: the clock without the tracer's own time, and what a stamp carries along (the turn, and metrics).
 *
 * Ownership: the thread's. Threads: the caller holds the GIL and passes its own thread. Cost: thread_stamp is 2 ns
 * beside the clock, and a read of each further metric. */
#ifndef PERFLAW_PYTHON_STAMPS_H
#define PERFLAW_PYTHON_STAMPS_H

#include "python/metrics/metrics.h"
#include "threads.h"

/* Write a TURN: another thread had the interpreter since this one wrote last. */
void thread_write_turn(Thread *thread);

/* The stamp for an event at the time `now`. Stamps never go back. Writes what changed before the event. */
static inline int64_t thread_stamp(Thread *thread, int64_t now) {
    int may_be_off = cpu_may_be_off(&thread->cpu, now);
    int64_t overhead_ns = thread->overhead_ns; /* before waiting for room in the ring, which is after `now` */
    if (may_be_off) now = metrics_write_off_cpu(thread, now);
    int64_t stamp = now - overhead_ns;
    if (stamp < thread->last_stamp) stamp = thread->last_stamp;
    thread->last_stamp = stamp;
    /* the readings of the CPU clock, and that waiting */
    if (may_be_off) thread->overhead_ns = overhead_ns + clock_ns(&recording.clock) - now;
    if (recording.last_writer != thread) thread_write_turn(thread);
    if (metrics_wanted) metrics_write(thread);
    return stamp;
}

/* Around work of the tracer that takes longer than an event: its time is left out of stamps, and so is waiting for a
 * CPU or for room in the ring meanwhile. overhead_begin gives the stamp that overhead_end goes on with, and
 * overhead_end how long the work took. They may be nested. */
int64_t overhead_begin(void);
int64_t overhead_end(int64_t stamp);

/* All that a thread did since a stamp, and `more_ns`, is the tracer's, with the waiting for a CPU meanwhile. */
void overhead_since(Thread *thread, int64_t stamp, int64_t more_ns);

#endif
