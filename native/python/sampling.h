/* Which invocations are candidates for the uniform sample (skips.h), and which of them have their features read.
 *
 * Ownership: the function's. Threads: the caller holds the GIL and passes its own thread. Cost: a look at a call 50
 * ns, a reading 20 to 50 ns a feature; readings beyond the sample take at most some hundredths of the time. */
#ifndef PERFLAW_PYTHON_SAMPLING_H
#define PERFLAW_PYTHON_SAMPLING_H

#include "recording.h"

/* Look at a call closely, now that the function's countdown is over. Gives its priority (-1: it is not sampled), and
 * whether its features are to be read. */
int32_t sampling_enter(Thread *thread, Function *function, int *read);
/* Read the features of an invocation at its entry, and write them as records. */
void sampling_read(Thread *thread, Function *function, Frame *frame);

#endif
