/* The hooks that gcc and clang have every function call, and how the recording of a thread begins with its first
 * event. */
#include "calibration.h"
#include "definitions.h"
#include "entry.h"
#include "features/entry.h"
#include "functions.h"
#include "invocations.h"
#include "metrics.h"
#include "process.h"
#include "threads.h"

#define EXPORTED __attribute__((visibility("default")))

static __thread int beginning __attribute__((tls_model("initial-exec")));

/* ---- a thread begins ---- */

static Thread *create_thread(void) {
    if (recording.state != RECORDING && !process_begin()) return NULL;
    Thread *thread = thread_create();
    if (!thread) return NULL;
    const char *source = cpu_start(&thread->cpu, &recording.clock);
    if (recording.fake_clock) cpu_ignore(&thread->cpu);
    if (thread->number == 1) define_text("cpu", recording.fake_clock ? "as the fake clock: never waiting" : source);
    if (thread->number == 1) define_text("off", "queued by schedstat and switches of the thread; all else is waiting");
    thread_write(thread, thread->number, 0, 0, -1, -1, EVENT_THREAD);
    thread_watch_end(thread);
    metrics_begin_thread(thread);
    return current_thread = thread;
}

/* The state of the calling thread, whose first event this is; NULL if it cannot be recorded. */
static Thread *begin_thread(void) {
    sigset_t before;
    if (beginning) return NULL; /* this is an instrumented malloc, called by what begins the recording */
    signals_hold(&before);
    beginning = 1;
    Thread *thread = create_thread();
    if (thread && thread->number == 1 && !recording.fake_clock) calibrate(thread);
    if (thread && thread->number == 1) define_start();
    beginning = 0;
    signals_release(&before);
    return thread;
}

/* ---- the hooks ---- */

/* The thread if this event is to be recorded. It then has no other event until `busy` is taken back. */
static inline Thread *claim_thread(uintptr_t stack) {
    if (recording.state >= ENDED) return NULL;
    Thread *thread = current_thread ? current_thread : begin_thread();
    if (!thread || thread->busy) return NULL;
    if (__builtin_expect(stack - thread->stack_low > thread->stack_high - thread->stack_low, 0)) {
        thread->foreign_events++;
        return NULL;
    }
    thread->busy = 1;
    return thread;
}

/* Called by the hook's own code, which link-time optimisation does not see. */
#define CALLED_BY_CODE __attribute__((used, externally_visible, visibility("hidden")))

CALLED_BY_CODE int entry_begin(void *function, void *site, uintptr_t stack) {
    Thread *thread = claim_thread(stack);
    if (!thread) return 0;
    int reads = invocation_enter(thread, function, site, stack);
    if (!reads) thread->busy = 0;
    return reads;
}

CALLED_BY_CODE void entry_read(const Registers *registers) {
    Thread *thread = current_thread;
    KnownFunction *known = function_find(thread, thread->open[thread->height - 1].function);
    if (registers && known) features_at_entry(thread, known, registers);
    thread->busy = 0;
}

/* Never inlined into calibration.c: it would find another place of the stack than the entry hook. */
EXPORTED __attribute__((noinline)) void __cyg_profile_func_exit(void *function, void *site) {
    uintptr_t stack = (uintptr_t)__builtin_dwarf_cfa();
    Thread *thread = claim_thread(stack);
    if (!thread) return;
    invocation_exit(thread, function, site, __builtin_return_address(0), stack);
    thread->busy = 0;
}

/* Move the fake clock forward. Programs under --clock fake declare this weak. */
EXPORTED void perflaw_advance(long long ns) { recording.fake_now += ns; }
