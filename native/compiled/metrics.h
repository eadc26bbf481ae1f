/* Counters besides the clock that events of compiled programs carry, where the person asks for them (--metric).
 *
 * What the kernel counts is read here. Allocations and locks are counted by a further preloaded library (native/meters),
 * and those of other packages by theirs; each gives the counter of the calling thread, which never falls.
 *
 * Ownership: the values last written belong to the thread. Threads: each passes only itself. Cost: each metric is read
 * at each event. */
#ifndef PERFLAW_COMPILED_METRICS_H
#define PERFLAW_COMPILED_METRICS_H

#include "recording.h"

/* Number of metrics that are read at each event. */
extern int metrics_wanted;

/* Define the metrics that PERFLAW_TARGET_METRICS names, and the parts of the time off the CPU. */
void metrics_start(void);
/* Begin for the calling thread: what it counted before belongs to no call. */
void metrics_begin_thread(Thread *thread);
/* Write a CHANGE for every metric of this thread that moved. */
void metrics_write(Thread *thread);
/* Write the time off the CPU since the last event, for the next one. Gives the time to go on with. */
int64_t metrics_write_off_cpu(Thread *thread, int64_t now);

/* The beginning of time that is all overhead: time on the CPU, and time off it, as the recorder may have to be waited for. */
typedef struct Pause {
    int64_t begun, overhead_ns, off_ns; /* the thread's until then */
} Pause;

/* The program's time ends here. */
Pause metrics_pause(Thread *thread);
/* It has ended already at this time, that of an event whose time off the CPU is written. */
static inline Pause metrics_pause_since(const Thread *thread, int64_t now) { return (Pause){now, thread->overhead_ns, thread->off_ns}; }
/* The program's time goes on. Gives how long the thread was on the CPU meanwhile, without waiting for room in the ring. */
int64_t metrics_go_on(Thread *thread, Pause pause);

#endif
