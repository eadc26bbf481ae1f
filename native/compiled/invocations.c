#include "general_registers.h"

#include "invocations.h"

#include "branches.h"
#include "functions.h"
#include "metrics.h"
#include "threads.h"
#include "vectors.h"

/* ---- stamps ---- */

/* The clock without the hooks' own time. It never goes back. */
static inline int64_t stamp_of(Thread *thread, int64_t now) {
    int64_t overhead_ns = thread->overhead_ns; /* before waiting for room in the ring, which is after `now` */
    int may_be_off = cpu_may_be_off(&thread->cpu, now);
    if (__builtin_expect(may_be_off, 0)) now = metrics_write_off_cpu(thread, now);
    int64_t stamp = now - overhead_ns;
    if (stamp < thread->last_stamp) stamp = thread->last_stamp;
    thread->last_stamp = stamp;
    /* the readings of the CPU clock and of the scheduler's account, and that waiting */
    if (__builtin_expect(may_be_off, 0)) thread->overhead_ns = overhead_ns + clock_ns(&recording.clock) - now;
    return stamp;
}

/* ---- which invocations are still open ---- */

/* What is open above this invocation was left by longjmp or an exception. */
static void bury_above(Thread *thread, OpenInvocation *top) {
    thread->top = top;
    thread_write(thread, thread->last_stamp, top->frame, 1, -1, -1, EVENT_DEAD);
}

void invocations_bury(Thread *thread, uintptr_t stack) {
    OpenInvocation *top = thread->top;
    while (top->stack < stack) top--;
    if (__builtin_expect(top != thread->top, 0)) bury_above(thread, top);
}

/* The invocation whose exit hook was called by a jump, when its frame was gone already: the stack then stands where the
 * caller's stood at the call. NULL if it is not open. */
static OpenInvocation *open_tail(const Thread *thread, const void *function, uintptr_t stack) {
    OpenInvocation *caller = thread->top, *open;
    while (caller->stack < stack) caller--;
    /* The outermost of the deeper ones has the frame; what was inlined there shares its address. */
    for (open = caller; open < thread->top && open[1].stack == caller[1].stack;) open++;
    while (open > caller && open->function != function) open--;
    return open > caller ? open : NULL;
}

static OpenInvocation *open_of(const Thread *thread, const void *function, uintptr_t stack) {
    for (OpenInvocation *open = thread->top; open > thread->bottom; open--)
        if (open->function == function && open->stack >= stack) return open;
    return NULL;
}

/* ---- the two events ---- */

/* Where the call stands in its caller: bytes from the start of the caller's code to the last byte of the call (the
 * address that is returned to may belong to another line). -1 if the call was inlined, or if that is not known
 * because the caller may be a function that is not selected. */
static inline int32_t call_site(const Thread *thread, const void *site, uintptr_t stack) {
    const OpenInvocation *caller = thread->top;
    if ((caller->stack & ~IS_READ_AT_END) == stack) return -1;
    intptr_t offset = (const char *)site - 1 - (const char *)caller->function;
    return offset >= 0 && offset < caller->size ? (int32_t)offset : -1;
}

int invocation_enter(Thread *thread, const void *function, const void *site, uintptr_t stack) {
    KnownFunction *known = function_find(thread, function);
    if (!known) return 0;
    if (known->number == NOT_SELECTED) {
        thread->overhead_ns += recording.skip_ns;
        return 0;
    }
    int64_t now = clock_ns(&recording.clock);
    invocations_bury(thread, stack);
    if (thread->top == thread->top_end && !thread_grow(thread)) return 0;
    int64_t stamp = stamp_of(thread, now);
    int32_t key = -1, at = call_site(thread, site, stack);
    int reads = 0;
    if (__builtin_expect(metrics_wanted, 0)) metrics_write(thread);
    if (__builtin_expect(known->countdown-- <= 0, 0)) key = function_look(thread, known, now, &reads);
    OpenInvocation *open = ++thread->top;
    *open = (OpenInvocation){function, stack, ++thread->last_frame, known->number, known->size};
    thread_write(thread, stamp, open->frame, known->number, at, key, EVENT_ENTER);
    thread->overhead_ns += recording.enter_ns;
    if (__builtin_expect(thread->observed_height || (key >= 0 && known->is_observed), 0))
        thread->is_first = function_observe(thread, known, now, key >= 0) && !reads;
    return reads || thread->is_first;
}

void invocation_exit(Thread *thread, const void *function, const void *site, const void *returns, uintptr_t stack) {
    OpenInvocation *open = thread->top;
    if (__builtin_expect(open->function != function || open->stack != stack, 0)) {
        if (function_is_unselected(thread, function)) return;
        open = returns == site ? open_tail(thread, function, stack) : open_of(thread, function, stack);
        if (!open) return; /* it began before the recording did */
        if (open < thread->top) bury_above(thread, open);
    }
    int64_t now = clock_ns(&recording.clock);
    if (__builtin_expect(thread->counting != NULL, 0)) thread->overhead_ns += branches_cost(thread, open->frame);
    int64_t stamp = stamp_of(thread, now);
    if (__builtin_expect(metrics_wanted, 0)) metrics_write(thread);
    const OpenInvocation *completed = thread->top--;
    if (__builtin_expect(thread->counting != NULL, 0)) branches_end(thread, completed->frame);
    thread_write(thread, stamp, completed->frame, completed->number, -1, -1, EVENT_EXIT);
    thread->overhead_ns += recording.exit_ns;
}
