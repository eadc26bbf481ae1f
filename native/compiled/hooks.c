/* The hooks that gcc and clang have every function call. */
#include "general_registers.h"

#include "entry.h"
#include "events.h"
#include "features/entry.h"
#include "functions.h"
#include "invocations.h"
#include "quick.h"
#include "silence.h"

#define EXPORTED __attribute__((visibility("default")))

/* Called by the hook's own code, which link-time optimisation does not see. */
#define CALLED_BY_CODE __attribute__((used, externally_visible, visibility("hidden")))

CALLED_BY_CODE int entry_quick(void *function, void *site, uintptr_t stack) {
    Thread *thread = current_thread;
    if (!thread || !quick_claim(thread, stack, thread->stack_low, thread->stack_high - thread->stack_low)) return 0;
    return quick_done(thread, quick_enter(thread, function, (uintptr_t)site, stack, stack));
}

CALLED_BY_CODE int entry_begin(void *function, void *site, uintptr_t stack) {
    Thread *thread = claim_thread(stack);
    if (!thread) return 0;
    uint32_t skipped = thread->skipped;
    int reads = invocation_enter(thread, function, site, stack);
    if (UNLIKELY(thread->skipped != skipped))
        silence(thread, function, ((const char *const *)stack)[-1], (const void *)__cyg_profile_func_enter, 0);
    if (!reads) thread->busy = 0;
    return reads;
}

CALLED_BY_CODE void entry_read(const Registers *registers) {
    Thread *thread = current_thread;
    KnownFunction *known = function_find(thread, thread->top->function);
    if (registers && known) features_at_entry(thread, known, registers, ((const void *const *)registers->general[7])[-1], NULL);
    thread->busy = 0;
}

static __attribute__((noinline)) void leave(void *function, void *site, const void *returns, uintptr_t stack) {
    Thread *thread = claim_thread(stack);
    if (!thread) return;
    uint32_t skipped = thread->skipped;
    invocation_exit(thread, function, site, returns, stack);
    if (UNLIKELY(thread->skipped != skipped))
        silence(thread, function, returns, (const void *)__cyg_profile_func_exit, 1);
    thread->busy = 0;
}

/* Never inlined into calibration.c: it would find another place of the stack than the entry hook. */
EXPORTED __attribute__((noinline)) void __cyg_profile_func_exit(void *function, void *site) {
    uintptr_t stack = (uintptr_t)__builtin_dwarf_cfa();
    Thread *thread = current_thread;
    if (thread && quick_claim(thread, stack, thread->stack_low, thread->stack_high - thread->stack_low) &&
        quick_done(thread, quick_leave(thread, function, stack)))
        return;
    leave(function, site, __builtin_return_address(0), stack);
}

/* Move the fake clock forward. Programs under --clock fake declare this weak. */
EXPORTED void perflaw_advance(long long ns) { recording.fake_now += ns; }
