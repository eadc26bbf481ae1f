/* Counters besides the clock that events carry: CPU time always, others if the person asks for them.
 *
 * Ownership: the values last written belong to the thread. Threads: the caller holds the GIL and passes its own thread.
 * Cost: see counters.h; each metric is read at each event. */
#ifndef PERFLAW_PYTHON_METRICS_H
#define PERFLAW_PYTHON_METRICS_H

#include "python/recording.h"
#include "waits.h"

/* Parts of the time off the CPU, in lanes behind those of the further metrics: ready to run without a CPU, and then the
 * kinds of waiting (waits.h). What is left of the time off the CPU is waiting for something unknown. */
enum Mark { MARK_QUEUED, MARK_WAITS, MARKS = MARK_WAITS + WAITS_KINDS };

/* Number of further metrics that are read at each event. */
extern int metrics_wanted;

/* Define the metrics, and begin to count those that the settings name. */
void metrics_start(void);
/* Count no more, with everything that was put around the interpreter's functions taken away. */
void metrics_stop(void);
/* Begin for the calling thread: what it counted before belongs to no call. */
void metrics_begin_thread(Thread *thread);
/* The thread was switched out, or may have been: write a CHANGE if it was, and what it waited for (enum Mark). Gives the time of the event that was to
 * be at `now`, which is later if the switch came between the reading of the clock and this call. */
int64_t metrics_write_off_cpu(Thread *thread, int64_t now);
/* Write that the thread was off the CPU for so long, by the fake clock. */
void metrics_write_fake_off_cpu(Thread *thread, int64_t ns);
/* Write a CHANGE for every further metric of this thread that moved. */
void metrics_write(Thread *thread);

#endif
