/* Where events come from: sys.monitoring on Python 3.12 and later (monitoring.c), a frame evaluation function on 3.11
 * (evaluation.c).
 *
 * Ownership: the interpreter's. Threads: the caller holds the GIL. Cost: see events.h. */
#ifndef PERFLAW_PYTHON_EVENT_SOURCE_H
#define PERFLAW_PYTHON_EVENT_SOURCE_H

#include "python/interpreter/frames.h"

/* Events of a call of a function that is looked at and not recorded. */
enum { EVENTS_PER_CALL = PY_VERSION_HEX < 0x030C0000 ? 1 : 2 };

/* Have the events of all threads told. 0 if the interpreter refuses. */
int events_start(void);
/* Have no more events told. */
void events_stop(void);

#endif
