/* The recording of this process from its start to its end. A process may be recorded again and again.
 *
 * Threads: the caller holds the GIL, which is given up for a while where the clock is started. */
#ifndef PERFLAW_PYTHON_MODULE_H
#define PERFLAW_PYTHON_MODULE_H

#include "recording.h"

/* Begin to record this process as the settings say, a dict of strings. Gives why that is impossible; NULL if it has
 * begun. */
const char *module_start(PyObject *settings);
/* End the recording, if there is one. */
void module_finish(void);

#endif
