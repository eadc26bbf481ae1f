/* What the tracer itself costs the program, measured on this machine in this process: loops of calls with the tracer
 * and without.
 *
 * Threads: the first one, under the GIL, before the recording starts. Cost: some milliseconds. */
#ifndef PERFLAW_PYTHON_CALIBRATION_H
#define PERFLAW_PYTHON_CALIBRATION_H

/* Measure the costs of the recording; those that cannot be measured stay 0. */
void calibrate(void);

#endif
