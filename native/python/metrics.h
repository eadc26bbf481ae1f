/* Counters besides the clock that every event carries: CPU time always, others where the person asked for them. */
#ifndef PERFLAW_PYTHON_METRICS_H
#define PERFLAW_PYTHON_METRICS_H

#include "tracer.h"

/* Whether some counter is to be looked at on every event. */
extern int metrics_wanted;

/* Begin to count what settings.metrics names. */
void metrics_start(void);
/* Begin for the calling thread: what it counted before is nobody's. */
void metrics_begin(Thread *thread);
/* The thread was switched out, or may have been: write a CHANGE if it was. Gives the time of the event that was to be
 * `now`: a later one if the switch came between reading the clock and this. */
int64_t metrics_tell_cpu(Thread *thread, int64_t now);
void metrics_tell_off(Thread *thread, int64_t ns);
/* Write a CHANGE for every other counter of this thread that moved. */
void metrics_tell(Thread *thread);

#endif
