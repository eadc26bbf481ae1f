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
/* An invocation of an observed function, which is on the stack, was sampled or goes on: of what it calls, the first call
 * of each function is read as well. That takes a tenth of the time at most; beyond it, observations go without. */
static inline void sampling_observe(Thread *thread, int64_t now) {
    int is_within = thread->observation && thread->observed_height <= thread->height;
    if (is_within || (recording.observing_ns - 1000000) * 10 > now - recording.started_ns) return;
    if (!++recording.observations) recording.observations = 1;
    thread->observation = recording.observations;
    thread->observed_height = thread->height;
}
/* Whether a call, which is on the stack, is the first one of its function within an observation. */
static inline int sampling_is_first(const Thread *thread, Function *function) {
    if (function->observation == thread->observation || thread->height <= thread->observed_height) return 0;
    function->observation = thread->observation;
    return function->sampler != NULL;
}
/* Read the features of an invocation at its entry, and write them as records. is_first: only because it is the
 * first one within an observation. */
void sampling_read(Thread *thread, Function *function, Frame *frame, int is_first);

#endif
