/* Time that a thread spent off the CPU, at the price of a test of memory instead of a system call.
 *
 * CLOCK_THREAD_CPUTIME_ID costs some 370 ns, too much for every event. The kernel clears a thread's rseq->rseq_cs
 * whenever the thread was switched out; so it is made to point to a descriptor that covers no code, and the CPU clock
 * is read if it no longer does. A hypervisor that gives the CPU to another guest clears nothing, but the kernel's CPU
 * clock leaves that time (steal) out; so the clock is also read after a gap between two events. Without rseq (glibc
 * before 2.35) the gap is shorter: any switch may have been part of it.
 *
 * Ownership: a Cpu is its thread's. Threads: only its own thread may touch it. Cost: cpu_may_be_off takes 1 ns.
 */
#ifndef PERFLAW_CPU_H
#define PERFLAW_CPU_H

#include "clock.h"

/* No switch away and back is shorter than the first. The second: reading the CPU clock takes one percent of it. */
enum { CPU_GAP_NS = 5000, CPU_STEAL_GAP_NS = 50000, CPU_QUEUED_NS = 20000 };

typedef struct Cpu {
    volatile uint64_t *flag; /* rseq_cs of this thread, NULL if there is none */
    int64_t last_event;      /* its time */
    int64_t gap;             /* ns since the last event after which the CPU clock is read */
    int64_t wall, spent;     /* both clocks at the beginning */
    int64_t reported;        /* ns off the CPU that were given out so far */
    int64_t queued;          /* ns that the thread waited for a CPU since it began, when that was read last */
    int64_t voluntary;       /* times that it gave up the CPU, when that was read last */
} Cpu;

extern const uint64_t cpu_armed; /* what the flag holds as long as the thread is not switched out */

/* Begin for the calling thread. Gives how its CPU time is known, in words. */
const char *cpu_start(Cpu *cpu, const Clock *clock);
/* Take the thread for one that is never off the CPU, as with a fake clock. */
void cpu_ignore(Cpu *cpu);
/* ns off the CPU since the last call up to *now, never negative; *now moves on to the moment of the readings if it is
 * long past. Arms the flag again. */
int64_t cpu_off(Cpu *cpu, const Clock *clock, int64_t *now);
/* The same, but no more than has passed since `last`. What was off before that, in time that was left out, or unseen
 * (interrupts, other guests of a hypervisor), thus makes no later CPU time negative. */
int64_t cpu_off_since(Cpu *cpu, const Clock *clock, int64_t last, int64_t *now);
/* The same as cpu_off for time that is the tracer's. Its switches say nothing of the program's later time off the CPU, so
 * they are taken note of here. */
int64_t cpu_off_in_tracer(Cpu *cpu, const Clock *clock, int64_t *now);
/* How much of the time off the CPU that was just given out others took: the thread was ready to run, and another one or
 * another guest had its CPU. The rest is waiting of its own accord. Cost: 0.4 us, and 4 us more where the thread was off
 * for longer than CPU_QUEUED_NS; for less, one that gave up the CPU itself counts as waiting. */
int64_t cpu_queued(Cpu *cpu, int64_t off);
/* Leave out what passed between two readings, as if the thread had not existed meanwhile; its switches as well. */
void cpu_leave_out(Cpu *cpu, int64_t wall, int64_t spent);
/* CPU time of the calling thread; of all threads of the process. */
int64_t cpu_spent_ns(void);
int64_t cpu_of_process_ns(void);

/* Whether the thread may have been off the CPU since the last event, which was before `now`. */
static inline int cpu_may_be_off(Cpu *cpu, int64_t now) {
    int64_t passed = now - cpu->last_event;
    cpu->last_event = now;
    return passed > cpu->gap || (cpu->flag && *cpu->flag != cpu_armed);
}

#endif
