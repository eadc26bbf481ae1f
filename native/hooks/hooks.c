/* The hooks themselves. Cost: about 20 ns each, of which the clock is 8; 3 ns where the function is not selected. */
#include "hooks.h"

#define EXPORTED __attribute__((visibility("default")))

Hooks hooks;

/* ---- records ---- */

static int64_t tell_cpu(Thread *thread, int64_t now) {
    int64_t off = cpu_off_since(&thread->cpu, &hooks.clock, thread->last + thread->taken, &now);
    if (off) hooks_write(thread, off, 0, METRIC_CPU, -1, -1, EVENT_CHANGE);
    return now;
}

/* The clock without what was ours; it never goes back. */
static inline int64_t stamp_of(Thread *thread, int64_t now) {
    if (__builtin_expect(cpu_may_be_off(&thread->cpu, now), 0)) now = tell_cpu(thread, now);
    int64_t stamp = now - thread->taken;
    if (stamp < thread->last) stamp = thread->last;
    return thread->last = stamp;
}

/* ---- which invocations are still open ---- */

static int64_t innermost(const Thread *thread) { return thread->height ? thread->open[thread->height - 1].frame : 0; }

/* What stands above this height was left by longjmp or an exception. */
static void bury_to(Thread *thread, uint32_t height) {
    thread->height = height;
    hooks_write(thread, thread->last, innermost(thread), 1, -1, -1, EVENT_DEAD);
}

/* The stack stands at this address: invocations whose stack reached deeper are no more. */
void hooks_bury(Thread *thread, uintptr_t stack) {
    uint32_t height = thread->height;
    while (height && thread->open[height - 1].stack < stack) height--;
    if (__builtin_expect(height != thread->height, 0)) bury_to(thread, height);
}

/* The hook was called in a jump, the function's frame being gone already: the stack is its caller's at the call. */
static uint32_t place_of_tail(const Thread *thread, const void *function, uintptr_t stack) {
    uint32_t first = thread->height, at;
    while (first && thread->open[first - 1].stack < stack) first--;
    /* The outermost of those that are deeper is its frame; what was inlined there shares the address. */
    for (at = first; at < thread->height && thread->open[at].stack == thread->open[first].stack;) at++;
    while (at > first && thread->open[at - 1].function != function) at--;
    return at > first ? at : 0;
}

static uint32_t place_of(const Thread *thread, const void *function, uintptr_t stack) {
    for (uint32_t at = thread->height; at; at--)
        if (thread->open[at - 1].function == function && thread->open[at - 1].stack >= stack) return at;
    return 0;
}

/* ---- the two events ---- */

/* Where in the caller the call stands: bytes from the start of its code, of the last byte of the call (what is returned to
 * may be another line); -1 where it was inlined, or is not known: the caller may be a function that is not selected. */
static inline int32_t site_of(const Thread *thread, const void *site, uintptr_t stack) {
    if (!thread->height || thread->open[thread->height - 1].stack == stack) return -1;
    const Open *caller = &thread->open[thread->height - 1];
    intptr_t offset = (const char *)site - 1 - (const char *)caller->function;
    return offset >= 0 && offset < caller->size ? (int32_t)offset : -1;
}

void hooks_enter(Thread *thread, void *function, void *site, uintptr_t stack) {
    Known *known = known_find(thread, function);
    if (!known) return;
    if (known->number == LEFT_OUT) {
        thread->taken += hooks.skip_ns;
        return;
    }
    int64_t now = clock_ns(&hooks.clock);
    hooks_bury(thread, stack);
    if (thread->height == thread->room && !thread_grow(thread)) return;
    int64_t stamp = stamp_of(thread, now);
    int32_t key = known->countdown-- > 0 ? -1 : known_draw(thread, known), at = site_of(thread, site, stack);
    Open *open = &thread->open[thread->height++];
    *open = (Open){function, stack, ++thread->frames, known->number, known->size};
    hooks_write(thread, stamp, open->frame, known->number, at, key, EVENT_ENTER);
    thread->taken += hooks.enter_ns;
}

void hooks_exit(Thread *thread, void *function, void *site, void *returns, uintptr_t stack) {
    uint32_t place = thread->height;
    if (!place) return;
    const Open *top = &thread->open[place - 1];
    if (__builtin_expect(top->function != function || top->stack != stack, 0)) {
        if (known_left_out(thread, function)) return;
        place = returns == site ? place_of_tail(thread, function, stack) : place_of(thread, function, stack);
        if (!place) return; /* not seen to begin */
        if (place < thread->height) bury_to(thread, place);
    }
    int64_t stamp = stamp_of(thread, clock_ns(&hooks.clock));
    const Open *done = &thread->open[--thread->height];
    hooks_write(thread, stamp, done->frame, done->number, -1, -1, EVENT_EXIT);
    thread->taken += hooks.exit_ns;
}

/* ---- the door ---- */

/* The thread if this event is to be recorded, which is then its only one until `busy` is taken back. */
static inline Thread *claimed(uintptr_t stack) {
    if (hooks.state >= OVER) return NULL;
    Thread *thread = current_thread ? current_thread : thread_begin();
    if (!thread || thread->busy) return NULL;
    if (__builtin_expect(stack - thread->low > thread->high - thread->low, 0)) {
        thread->foreign++;
        return NULL;
    }
    thread->busy = 1;
    return thread;
}

EXPORTED void __cyg_profile_func_enter(void *function, void *site) {
    uintptr_t stack = (uintptr_t)__builtin_dwarf_cfa();
    Thread *thread = claimed(stack);
    if (!thread) return;
    hooks_enter(thread, function, site, stack);
    thread->busy = 0;
}

EXPORTED void __cyg_profile_func_exit(void *function, void *site) {
    uintptr_t stack = (uintptr_t)__builtin_dwarf_cfa();
    Thread *thread = claimed(stack);
    if (!thread) return;
    hooks_exit(thread, function, site, __builtin_return_address(0), stack);
    thread->busy = 0;
}

/* For programs under --clock fake, which declare it weak. */
EXPORTED void perflaw_advance(long long ns) { hooks.fake_now += ns; }
