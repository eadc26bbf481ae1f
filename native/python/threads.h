/* A ring and a list of open frames for every thread. The ring of a thread that has ended serves a later thread.
 *
 * Ownership: a Thread is never freed. Threads: a thread passes only itself; thread ends need no GIL, and the list of
 * idle threads has a lock. A thread has one Thread from its first event to its end, over all recordings. Cost: a new
 * thread is a ring file and a mapping, some 100 us; writing a record is 2 ns. */
#ifndef PERFLAW_PYTHON_THREADS_H
#define PERFLAW_PYTHON_THREADS_H

#include "recording.h"

/* Prepare for the end of threads. 0 if that cannot be done. */
int threads_start(void);
/* All threads that were ever recorded, linked by `next`. */
Thread *threads_all(void);
/* After a recording: unmap all rings. The threads begin anew with the next recording of this process. */
void threads_release(void);
/* In a forked child: the other threads do not exist, and the rings are the parent's. Async-signal-safe. */
void threads_forget(void);

/* The state for the calling thread, of a thread that has ended or new, with a number and without open frames. NULL
 * if there is no memory or no room in the spool. */
Thread *thread_create(void);
/* Have the end of the calling thread written to its ring. */
void thread_watch_end(Thread *thread);
/* Room for one more record in a full ring, which may wait for the recorder. 0 if the recording is over. */
int thread_make_room(Thread *thread);
/* Room for more open frames. 0 if there is no memory. */
int thread_grow(Thread *thread);

/* Write a record; it is lost, and counted, if there is no room. */
static inline void thread_write(Thread *thread, int64_t value, int64_t frame, int32_t code, int32_t site, int32_t key,
                                int32_t kind) {
    if (thread->ring.position == thread->ring.limit && !thread_make_room(thread)) {
        thread->lost_records++;
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

#endif
