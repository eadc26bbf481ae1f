/* A ring, a stack of open invocations and a table of functions for every thread. The ring of a thread that has ended
 * serves a later thread.
 *
 * Ownership: a Thread lies in its own arena and is never given back. Threads: a thread passes only itself; the lists
 * of threads have a lock. Cost: a new thread is a ring file and a mapping, some 100 us; writing a record is 2 ns. */
#ifndef PERFLAW_COMPILED_THREADS_H
#define PERFLAW_COMPILED_THREADS_H

#include <signal.h>

#include "recording.h"

/* Prepare for the end of threads, once per program. 0 if that cannot be done. */
int threads_start(void);
/* All threads that were ever recorded, linked by `next`. */
Thread *threads_all(void);
/* Give the memory of all rings back when the recording is over, though a thread may still write to one. */
void threads_drop_rings(void);
/* Count those that are about to have their first event. */
void threads_count_beginning(int more);
/* Whether no thread is within an event. */
int threads_are_quiet(void);
/* In a forked child: the other threads do not exist, and the rings are the parent's. Async-signal-safe. */
void threads_forget(void);

/* The state for the calling thread, its own of an earlier recording, of a thread that has ended or new, with a number and without
 * open invocations.
 * NULL if there is no memory or no room in the spool. */
Thread *thread_create(void);
/* Have the end of the calling thread written to its ring. */
void thread_watch_end(Thread *thread);
/* Room for one more record in a full ring, which may wait for the recorder. 0 if the recording is over. */
int thread_make_room(Thread *thread);
/* Room for more open invocations. 0 if there is no memory. */
int thread_grow(Thread *thread);

/* What may make a thread leave a place for good: a handler's jump, or the thread's cancellation where it opens a file. */
typedef struct Interruptions {
    sigset_t signals;
    int cancellation;
} Interruptions;

/* Both wait while locks are held, which nobody would give back, and which a handler's hooks may want themselves. */
void signals_hold(Interruptions *before);
void signals_release(const Interruptions *before);

/* Write a record; it is lost, and counted, if there is no room. */
static inline void thread_write(Thread *thread, int64_t value, int64_t frame, int32_t code, int32_t site, int32_t key,
                                int32_t kind) {
    if (__builtin_expect(thread->ring.position == thread->ring.limit, 0) && !thread_make_room(thread)) {
        thread->lost_records++;
        return;
    }
    *ring_next(&thread->ring) = (Event){value, frame, code, site, key, kind};
    ring_publish(&thread->ring);
}

#endif
