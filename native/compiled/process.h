/* One recording per process: its beginning at the first event, its end, and what a fork makes of it.
 *
 * Ownership: the one Recording. Threads: any; a lock admits one. Cost: the beginning calibrates a clock, 5 ms. */
#ifndef PERFLAW_COMPILED_PROCESS_H
#define PERFLAW_COMPILED_PROCESS_H

/* Read what the recorder asks for from the environment, once per program. 0 if it asks for nothing. */
int process_prepare(void);
/* Forget all that was learnt in a recording that has ended, and its settings, so that another one can begin. No thread may be
 * within an event. */
void process_forget(void);
/* End the recording of this process. */
void process_finish(void);
/* Begin the recording of this process, or of a forked child, if it is to be recorded. 0 if it is not. errno stays as
 * it was. */
int process_begin(void);

#endif
