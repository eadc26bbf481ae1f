/* Counters besides the clock that events carry: CPU time always, others if the person asks for them.
 *
 * Ownership: the values last written belong to the thread. Threads: the caller holds the GIL and passes its own thread.
 * Cost: see counters.h; each metric is read at each event. */
#ifndef PERFLAW_PYTHON_METRICS_H
#define PERFLAW_PYTHON_METRICS_H

#include "python/recording.h"

/* Number of further metrics that are read at each event. */
extern int metrics_wanted;

/* Define the metrics, and begin to count those that the settings name; once per process. */
void metrics_start(void);
/* Begin for the calling thread: what it counted before belongs to no call. */
void metrics_begin_thread(Thread *thread);
/* The thread was switched out, or may have been: write a CHANGE if it was. Gives the time of the event that was to
 * be at `now`, which is later if the switch came between the reading of the clock and this call. */
int64_t metrics_write_off_cpu(Thread *thread, int64_t now);
/* Write that the thread was off the CPU for so long, by the fake clock. */
void metrics_write_fake_off_cpu(Thread *thread, int64_t ns);
/* Write a CHANGE for every further metric of this thread that moved. */
void metrics_write(Thread *thread);

#endif
