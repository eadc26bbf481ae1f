/* What the tracer itself costs the program, measured on this machine in this process: loops of calls with the tracer
 * and without.
 *
 * Threads: the first one, under the GIL, before the recording starts. Cost: some milliseconds. */
#ifndef PERFLAW_PYTHON_CALIBRATION_H
#define PERFLAW_PYTHON_CALIBRATION_H

#include "recording.h"

/* Measure the costs of the recording; those that cannot be measured stay 0. */
void calibrate(void);
/* Take the costs that another process of this machine and interpreter measured, from the setting COSTS, as hexadecimal
 * digits. 0 if there are none. */
int calibration_take(PyObject *settings);

#endif
