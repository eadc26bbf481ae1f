/* Who sent the last SIGINT, which handlers in Python are not told.
 *
 * Ownership: the process. Threads: any, but core_watch_interrupts one at a time. Cost: one store a signal.
 */
#ifndef PERFLAW_INTERRUPT_H
#define PERFLAW_INTERRUPT_H

/* Note the sender of each SIGINT from now on, and go on to the handler that there is; whoever sets another one ends that. 0 or
 * errno; ENOENT if there is no handler. */
int core_watch_interrupts(void);
/* 1 if the kernel sent the last one, as for Ctrl-C in a terminal; 0 if a process did; -1 if none came. */
int core_interrupted_by_terminal(void);

#endif
