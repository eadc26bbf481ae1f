/* Which invocations of a thread are open, and the records of their beginnings and ends.
 *
 * longjmp and exceptions leave functions without an exit hook. Which invocations are gone is known by where the stack
 * stands: what reached deeper than the stack now does is no more.
 *
 * Ownership: the thread's arena. Threads: a thread passes only itself. Cost: about 20 ns an event, of which the
 * clock is 8; 3 ns for a function that is not selected. */
#ifndef PERFLAW_COMPILED_INVOCATIONS_H
#define PERFLAW_COMPILED_INVOCATIONS_H

#include "recording.h"

/* A function begins. site: where the call returns to. stack: where the stack stood at the call. Gives whether features of
 * the invocation, which is the innermost now, are to be read. */
int invocation_enter(Thread *thread, const void *function, const void *site, uintptr_t stack);
/* A function ends. returns: where the hook itself returns to, which is `site` if the compiler made the hook's call a
 * jump. */
void invocation_exit(Thread *thread, const void *function, const void *site, const void *returns, uintptr_t stack);
/* The stack stands at this address: invocations whose stack reached deeper have died. */
void invocations_bury(Thread *thread, uintptr_t stack);

#endif
