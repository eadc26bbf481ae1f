#include "entry.h"

#include <errno.h>

#include "compiled/branches.h"
#include "compiled/metrics.h"
#include "read.h"

enum { FIRST_CAPACITY = 256 };
enum { UNSEEN_NS = 150 }; /* of a reading's cost: keeping all registers, and the processor's wrong guesses on the way there and back */

/* The entry of a call, or the empty one where it would go. */
static KnownCall *entry_of(const Thread *thread, const void *returns) {
    uint32_t at = (uint32_t)(((uintptr_t)returns * 0x9e3779b97f4a7c15ull) >> 40), mask = thread->call_capacity - 1;
    while (thread->calls[at & mask].returns && thread->calls[at & mask].returns != returns) at++;
    return &thread->calls[at & mask];
}

static int enlarge(Thread *thread) {
    uint32_t old = thread->call_capacity, capacity = old ? 2 * old : FIRST_CAPACITY;
    KnownCall *smaller = thread->calls, *larger = arena_alloc(&thread->arena, capacity * sizeof(KnownCall));
    if (!larger) return 0;
    thread->calls = larger;
    thread->call_capacity = capacity;
    for (uint32_t at = 0; at < old; at++)
        if (smaller[at].returns) *entry_of(thread, smaller[at].returns) = smaller[at];
    arena_free(&thread->arena, smaller, old * sizeof(KnownCall));
    return 1;
}

/* What to read at a call, NULL if nothing is. */
static const CallProgram *program_of(Thread *thread, const KnownFunction *known, const void *returns) {
    KnownCall *call = thread->call_capacity ? entry_of(thread, returns) : NULL;
    if (call && call->returns) return call->program;
    if (2 * thread->call_count >= thread->call_capacity && !enlarge(thread)) return NULL;
    const CallProgram *program = table_find(returns, known->function, known->number);
    *entry_of(thread, returns) = (KnownCall){returns, program};
    thread->call_count++;
    return program;
}

void features_at_entry(Thread *thread, KnownFunction *known, const Registers *registers, const void *place, const void *end) {
    int saved = errno;
    uint32_t calls = thread->call_count;
    const CallProgram *program = program_of(thread, known, place);
    int counts = branches_wanted && branches_begin(thread, known->function, known->number);
    int returns = end && program_of(thread, known, end);
    if (returns) thread->top->stack |= IS_READ_AT_END;
    known->sampler->is_futile = !program && !counts && !returns;
    if (program) features_read(thread, program, registers);
    if (!recording.fake_clock) {
        int64_t now = clock_ns(&recording.clock), begun = thread->last_stamp + thread->overhead_ns;
        /* All of it is overhead, so time off the CPU meanwhile (the recorder may have been asked) is no function's. */
        int64_t off = cpu_may_be_off(&thread->cpu, now) ? cpu_off_in_tracer(&thread->cpu, &recording.clock, &now) : 0;
        /* The stamp is that of this call's beginning; the way from here to the one at its end is a hook's as well. */
        int64_t passed = now - thread->last_stamp + recording.enter_ns - thread->overhead_ns;
        thread->overhead_ns += passed;
        if (off > 0) thread->off_ns += off < passed ? off : passed;
        int64_t spent = now - begun - off + recording.enter_ns + UNSEEN_NS;
        int is_new = thread->call_count != calls; /* that the recorder compiles a program is no cost of reading */
        if (is_new || spent < 0) spent = 0;
        if (thread->is_first) thread->observing_ns += spent;
        else {
            known->sampler->reading_ns += spent;
            thread->reading_ns += spent;
        }
    }
    thread->is_first = 0;
    errno = saved;
}

void features_at_end(Thread *thread, KnownFunction *known, const Registers *registers, const void *end) {
    int saved = errno;
    Pause pause = metrics_pause(thread);
    const CallProgram *program = program_of(thread, known, end);
    if (program) features_read(thread, program, registers);
    int64_t spent = metrics_go_on(thread, pause);
    thread->reading_ns += spent;
    if (known->sampler) known->sampler->reading_ns += spent;
    errno = saved;
}
