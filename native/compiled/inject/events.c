/* What happens when an injected function begins and ends. */
#include "compiled/general_registers.h"

#include "compiled/events.h"

#include "compiled/features/entry.h"
#include "compiled/functions.h"
#include "compiled/invocations.h"
#include "compiled/quick.h"
#include "compiled/vectors.h"
#include "frida.h"
#include "mirror.h"
#include "stubs.h"

/* Called by the stubs' code, which link-time optimisation does not see. */
#define CALLED_BY_CODE __attribute__((used, externally_visible, visibility("hidden")))

static const void *function_of(const char *behind) { return *(const void *const *)(behind - STUB_HEAD); }

/* A function whose return address is an exit stub's already was called by a jump at the end of another one, which is not usual. */
ALWAYS_INLINE int quick(const void *function, const uintptr_t *slot) {
    uintptr_t stack = (uintptr_t)slot, returns = *slot;
    Thread *thread = current_thread;
    if (!thread || UNLIKELY(mirror_may_leave(returns, (uintptr_t)inject_leave))) return 0;
    if (!quick_claim(thread, stack, thread->mirrored, thread->mirrored_span)) return 0;
    if (UNLIKELY(!quick_enter(thread, function, returns, stack, stack + 2))) return quick_done(thread, 0);
    *mirror_of(stack) = returns;
    return quick_done(thread, INJECT_RECORDED);
}

/* A function is called by a jump. Where it is open already at this place of the stack, functions jump to one another in turns, as
 * the states of a machine do: its earlier invocation, and what that has jumped to, is over, or such turns would nest without end. */
static void end_earlier_turn(Thread *thread, const void *function, uintptr_t slot) {
    const OpenInvocation *open = thread->top;
    while ((open->stack & ~IS_READ_AT_END) == slot && open->function != function) open--;
    if ((open->stack & ~IS_READ_AT_END) != slot) return;
    for (int64_t ends = thread->top - open; ends >= 0; ends--) {
        thread->top->stack = slot; /* it returns what a later one returns, which is not known yet */
        invocation_exit(thread, thread->top->function, NULL, NULL, slot);
    }
}

static int enter(const void *function, const uintptr_t *slot) {
    uintptr_t stack = (uintptr_t)slot, returns = *slot;
    Thread *thread = claim_thread(stack);
    if (!thread) return 0;
    int reads = 0, how = INJECT_PLAIN, is_tail = returns == (uintptr_t)inject_leave;
    if (__builtin_expect(mirror_has_copies, 0) && !is_tail) is_tail = mirror_leaves(returns);
    if (__builtin_expect(stack >= thread->mirrored, 1) || mirror_reach(thread, stack)) {
        if (is_tail) {
            returns = *mirror_of(stack);
            end_earlier_turn(thread, function, stack);
        } else {
            *mirror_of(stack) = returns;
            invocations_bury(thread, stack + 2); /* what has stood here is gone */
        }
        int64_t last = thread->last_frame;
        reads = invocation_enter(thread, function, (const void *)returns, stack);
        if (thread->last_frame != last && !is_tail) how = INJECT_RECORDED;
        if (reads) how += INJECT_READ;
    } else {
        thread->foreign_events++;
    }
    if (!reads) thread->busy = 0;
    return how;
}

static void read(const char *function, const Registers *registers) {
    KEEP_VECTORS;
    Thread *thread = current_thread;
    KnownFunction *known = function_find(thread, function);
    /* No call of a hook returns to these places, which stand for its beginning and its end. */
    if (known) features_at_entry(thread, known, registers, function + 1, function + 2);
    thread->busy = 0;
}

CALLED_BY_CODE int inject_quick(const char *behind, const uintptr_t *slot) { return quick(function_of(behind), slot); }
CALLED_BY_CODE int inject_enter(const char *behind, const uintptr_t *slot) { return enter(function_of(behind), slot); }
CALLED_BY_CODE void inject_read(const char *behind, const Registers *registers) { read(function_of(behind), registers); }

int perflaw_frida_enter(const void *function, uintptr_t *slot) {
    int how = quick(function, slot);
    if (UNLIKELY(!how)) how = enter(function, slot);
    if (how & INJECT_RECORDED) *slot = (uintptr_t)inject_leave;
    return how & INJECT_READ;
}

void perflaw_frida_read(const void *function, const Registers *registers) { read(function, registers); }

/* Read what the innermost invocation returns. The exit stub has kept the registers below the return address, and nothing has
 * used a vector register since. */
static __attribute__((noinline)) void read_returned(Thread *thread, uintptr_t slot) {
    const uintptr_t *kept = (const uintptr_t *)slot;
    Registers registers = {.general = {kept[-1], kept[-4], [7] = slot + sizeof *kept}};
    __asm__("movq %%xmm0, %0" : "=r"(registers.vector[0]));
    KEEP_VECTORS;
    thread->top->stack = slot;
    const char *function = thread->top->function;
    KnownFunction *known = function_find(thread, function);
    if (known) features_at_end(thread, known, &registers, function + 2);
}

/* End all that jumped to one another and return together. */
static __attribute__((noinline)) uintptr_t leave(uintptr_t slot, uintptr_t returns) {
    Thread *thread = current_thread;
    int is_open = thread && thread->generation == recording.active; /* it began in this recording */
    if (!is_open || !(thread = claim_thread(slot))) return returns;
    invocations_bury(thread, slot);
    while ((thread->top->stack & ~IS_READ_AT_END) == slot) {
        if (thread->top->stack != slot) read_returned(thread, slot);
        invocation_exit(thread, thread->top->function, NULL, NULL, slot);
    }
    thread->busy = 0;
    return returns;
}

CALLED_BY_CODE uintptr_t inject_exit(uintptr_t slot) {
    uintptr_t returns = *mirror_of(slot);
    Thread *thread = current_thread;
    if (!thread || !quick_claim(thread, slot, thread->mirrored, thread->mirrored_span)) return leave(slot, returns);
    int is_alone = (thread->top[-1].stack & ~IS_READ_AT_END) != slot;
    if (quick_done(thread, is_alone && quick_leave(thread, thread->top->function, slot))) return returns;
    return leave(slot, returns);
}
