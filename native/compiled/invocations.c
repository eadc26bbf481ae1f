#include "general_registers.h"

#include "invocations.h"

#include "branches.h"
#include "definitions.h"
#include "functions.h"
#include "inject/patches.h"
#include "inject/unwinding.h"
#include "metrics.h"
#include "threads.h"
#include "vectors.h"

enum { MAX_EARLIER = 256 };

/* ---- stamps ---- */

/* The clock without the hooks' own time. It never goes back. */
static inline int64_t stamp_of(Thread *thread, int64_t now) {
    Pause pause = metrics_pause_since(thread, now); /* before waiting for room in the ring, which is after `now` */
    int may_be_off = cpu_may_be_off(&thread->cpu, now);
    if (__builtin_expect(may_be_off, 0)) pause.begun = metrics_write_off_cpu(thread, now);
    int64_t stamp = pause.begun - pause.overhead_ns;
    if (stamp < thread->last_stamp) stamp = thread->last_stamp;
    thread->last_stamp = stamp;
    /* the readings of the CPU clock and of the scheduler's account, and that waiting */
    if (__builtin_expect(may_be_off, 0)) metrics_go_on(thread, pause);
    return stamp;
}

/* ---- which invocations are still open ---- */

/* Whether it began before the program was attached to: its place on the stack is its identity, others have numbers. */
static int is_earlier(const OpenInvocation *open) { return open->frame && open->frame == (int64_t)open->stack; }

/* What is open above this invocation was left by longjmp or an exception; what began earlier has probably returned. */
static void bury_above(Thread *thread, OpenInvocation *top) {
    OpenInvocation *innermost = thread->top, *last = top;
    while (last < innermost && is_earlier(last + 1)) last++;
    thread->top = top;
    if (last < innermost) thread_write(thread, thread->last_stamp, last->frame, 1, -1, -1, EVENT_DEAD);
    for (; last > top; last--) thread_write(thread, thread->last_stamp, last->frame, last->number, -1, -1, EVENT_EXIT);
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

static void open_earlier(Thread *thread, const OpenFrame *frame) {
    KnownFunction *known = function_find(thread, frame->function);
    if (!known || known->number == NOT_SELECTED || (thread->top == thread->top_end && !thread_grow(thread))) return;
    int32_t site = call_site(thread, frame->returns, frame->slot);
    const OpenInvocation *same = thread->top;
    while (same > thread->bottom && same->number != known->number) same--;
    if (same == thread->bottom) define_earlier(known->number);
    *++thread->top = (OpenInvocation){known->function, frame->slot, (int64_t)frame->slot, known->number, known->size, thread->skipped};
    thread_write(thread, thread->last_stamp, (int64_t)frame->slot, known->number, site, -1, EVENT_RESUME);
}

void invocations_open_earlier(Thread *thread) {
    OpenFrame *found = arena_alloc(&thread->arena, MAX_EARLIER * sizeof *found);
    int64_t overhead = thread->overhead_ns, begun = clock_ns(&recording.clock);
    int count = found ? frames_find(thread->stack_high, patches_lead_from, found, MAX_EARLIER) : 0;
    thread->last_stamp = begun - overhead;
    while (count) open_earlier(thread, &found[--count]);
    arena_free(&thread->arena, found, MAX_EARLIER * sizeof *found);
    thread->overhead_ns = overhead + clock_ns(&recording.clock) - begun;
}

/* ---- the two events ---- */

int invocation_enter(Thread *thread, const void *function, const void *site, uintptr_t stack) {
    KnownFunction *known = function_find(thread, function);
    if (!known) return 0;
    if (known->number == NOT_SELECTED) {
        thread->overhead_ns += recording.skip_ns - recording.skip_ns / 2;
        thread->skipped++;
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
    *open = (OpenInvocation){function, stack, ++thread->last_frame, known->number, known->size, thread->skipped};
    thread_write(thread, stamp, open->frame, known->number, at, key, EVENT_ENTER);
    thread->overhead_ns += recording.enter_ns;
    if (__builtin_expect(thread->observed_height || (key >= 0 && known->is_observed), 0))
        thread->is_first = function_observe(thread, known, now, key >= 0) && !reads;
    return reads || thread->is_first;
}

void invocation_exit(Thread *thread, const void *function, const void *site, const void *returns, uintptr_t stack) {
    OpenInvocation *open = thread->top;
    if (__builtin_expect(open->function != function || open->stack != stack, 0)) {
        if (function_is_unselected(thread, function)) {
            thread->overhead_ns += recording.skip_ns / 2;
            thread->skipped++;
            return;
        }
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
    thread_write(thread, stamp, completed->frame, completed->number, skipped_within(thread, completed), -1, EVENT_EXIT);
    thread->overhead_ns += recording.exit_ns;
}
