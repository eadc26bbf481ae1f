/* Greenlets: several stacks of frames that one thread runs by turns. What passes while a stack is switched out is no
 * cost of its frames.
 *
 * Ownership: the thread's. Threads: the caller holds the GIL and passes its own thread. Cost: a call of greenlet's C
 * API per event once the program has imported greenlet; nothing before. */
#ifndef PERFLAW_PYTHON_GREENLETS_H
#define PERFLAW_PYTHON_GREENLETS_H

#include "recording.h"

/* Whether the program has imported greenlet. */
extern int greenlets_in_use;

/* Look whether greenlet has been imported since. This is called when a recording begins and when a new function is met. */
void greenlets_look(void);
/* Follow them no more. */
void greenlets_stop(void);
/* Make the open frames of the greenlet that runs now the thread's current ones, and write a SWITCH if they change. */
void greenlets_follow(Thread *thread);

#endif
