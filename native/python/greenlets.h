/* Greenlets: several stacks that one thread runs by turns. What passes while a stack is away is no cost of its frames. */
#ifndef PERFLAW_PYTHON_GREENLETS_H
#define PERFLAW_PYTHON_GREENLETS_H

#include "tracer.h"

/* Whether the target has imported greenlet. */
extern int greenlets_in_use;

/* Look whether greenlet has been imported since; called when new code is met. */
void greenlets_look(void);
/* Make the stack of the greenlet that runs now the thread's current one. */
void greenlets_follow(Thread *thread);

#endif
