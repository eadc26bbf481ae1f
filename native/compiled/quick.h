/* The usual case of an event, as one short way without calls: the function is known, no look at the call is due, the thread was
 * not switched out, and nothing died meanwhile. Everything is looked at before anything is changed; where one thing is not as
 * usual, the event takes the long way (invocations.c), as if nothing had been tried.
 *
 * Files that include this are compiled with general registers alone (vectors.h).
 *
 * Ownership: the thread's state. Threads: a thread passes only itself. Cost: 4 ns an event beyond reading the TSC. */
#ifndef PERFLAW_COMPILED_QUICK_H
#define PERFLAW_COMPILED_QUICK_H

#include "functions.h"
#include "recording.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define ORDERED __asm__ volatile("" ::: "memory") /* a signal handler sees what is before this before what is behind it */

/* Begin an event of the thread whose stack stands at this address. 0: it takes the long way. */
ALWAYS_INLINE int quick_claim(Thread *thread, uintptr_t stack, uintptr_t low, uintptr_t span) {
    if (UNLIKELY(thread->busy)) return 0;
    thread->busy = 1;
    ORDERED; /* whoever ended the recording and then finds no thread busy knows that none goes on here */
    if (__builtin_expect(thread->generation == recording.active && stack - low < span, 1)) return 1;
    thread->busy = 0;
    return 0;
}

/* End an event. */
ALWAYS_INLINE int quick_done(Thread *thread, int done) {
    ORDERED;
    thread->busy = 0;
    return done;
}

/* The clock, if the thread was certainly on the CPU since its last event; 0 if not, or if the event needs more than a stamp. */
ALWAYS_INLINE int64_t quick_now(const Thread *thread) {
#if defined(__x86_64__)
    uint64_t passed = __builtin_ia32_rdtsc() - recording.clock.base_ticks;
    int64_t now = recording.clock.base_ns + (int64_t)((unsigned __int128)passed * recording.clock.multiplier >> 32);
    int is_usual = (uint64_t)(now - thread->cpu.last_event) < thread->quick_gap && *thread->switched == cpu_armed;
    return __builtin_expect(is_usual, 1) ? now : 0;
#else
    (void)thread;
    return 0;
#endif
}

/* Write the record of an event at this time. `cost`: of the hook, which later stamps leave out. */
ALWAYS_INLINE void quick_write(Thread *thread, int64_t now, int64_t frame, int32_t number, int32_t site, int32_t kind,
                               int64_t cost) {
    int64_t overhead = thread->overhead_ns, stamp = now - overhead, last = thread->last_stamp;
    stamp = stamp < last ? last : stamp;
    thread->cpu.last_event = now;
    thread->last_stamp = stamp;
    thread->overhead_ns = overhead + cost;
    *ring_next(&thread->ring) = (Event){stamp, frame, number, site, -1, kind};
    ring_publish(&thread->ring);
}

/* A function begins; `returns`: where the call returns to. `lowest`: callers stand at this address of the stack or above; it is
 * `stack` itself if the function may be inlined in its caller. 0: it takes the long way. */
ALWAYS_INLINE int quick_enter(Thread *thread, const void *function, uintptr_t returns, uintptr_t stack, uintptr_t lowest) {
    KnownFunction *known = function_place(thread, function);
    const OpenInvocation *caller = thread->top;
    if (UNLIKELY(known->function != function || known->countdown <= 0 || caller->stack < lowest)) return 0;
    if (UNLIKELY(thread->observed_height || caller == thread->top_end || thread->ring.position == thread->ring.limit)) return 0;
    int64_t now = quick_now(thread);
    if (UNLIKELY(!now)) return 0;
    known->countdown--;
    uint64_t offset = returns - 1 - (uintptr_t)function_address(caller->function);
    int32_t site = offset < caller->size && caller->stack != stack ? (int32_t)offset : -1;
    OpenInvocation *open = ++thread->top;
    *open = (OpenInvocation){function, stack, ++thread->last_frame, known->number, known->size, thread->skipped};
    quick_write(thread, now, open->frame, open->number, site, EVENT_ENTER, recording.enter_ns);
    return 1;
}

/* The innermost invocation, known by its function and where its stack stood, ends. 0: the event takes the long way. */
ALWAYS_INLINE int quick_leave(Thread *thread, const void *function, uintptr_t stack) {
    const OpenInvocation *open = thread->top;
    if (UNLIKELY(open->stack != stack || open->function != function || thread->ring.position == thread->ring.limit)) return 0;
    int64_t now = quick_now(thread);
    if (UNLIKELY(!now)) return 0;
    thread->top--;
    quick_write(thread, now, open->frame, open->number, skipped_within(thread, open), EVENT_EXIT, recording.exit_ns);
    return 1;
}

#endif
