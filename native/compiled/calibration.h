/* What the hooks cost the program beyond the time between an invocation's two stamps, measured in this process.
 *
 * Threads: the first one that is recorded, before its first event. Cost: some hundred microseconds. */
#ifndef PERFLAW_COMPILED_CALIBRATION_H
#define PERFLAW_COMPILED_CALIBRATION_H

#include "recording.h"

/* Measure enter_ns, exit_ns and skip_ns of the recording; they stay 0 if the thread runs on another stack than its
 * own. */
void calibrate(Thread *thread);
/* What some of the calls do that are measured. */
long calibration_body(long n);

#endif
