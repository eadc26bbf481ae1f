/* The beginning of every event, whoever reports it: hooks of the compiler or injected code.
 *
 * Ownership: the thread's state belongs to the thread. Threads: any. Cost: 1 ns; the first event of a thread some 100 us, that of a
 * process 20 ms more. */
#ifndef PERFLAW_COMPILED_EVENTS_H
#define PERFLAW_COMPILED_EVENTS_H

#include "recording.h"

/* The state of the calling thread, whose first event this is; NULL if it cannot be recorded. */
Thread *begin_thread(void);

/* The thread if this event is to be recorded; `stack`: where the stack stands. It then has no other event until `busy` is taken
 * back. */
static inline Thread *claim_thread(uintptr_t stack) {
    if (recording.state >= ENDED) return NULL;
    Thread *thread = current_thread;
    if (thread && thread->busy) return NULL;
    if (!thread || __builtin_expect(thread->generation != recording.active, 0)) thread = begin_thread();
    if (!thread) return NULL;
    if (__builtin_expect(stack - thread->stack_low > thread->stack_high - thread->stack_low, 0)) {
        thread->foreign_events++;
        return NULL;
    }
    thread->busy = 1;
    __asm__ volatile("" ::: "memory"); /* quick.h says why */
    if (__builtin_expect(thread->generation == recording.active, 1)) return thread;
    thread->busy = 0;
    return NULL;
}

#endif
