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
/* Where the call stands in its caller, the innermost invocation: bytes from the start of the caller's code to the last byte of
 * the call (the address that is returned to may belong to another line). -1 if the call was inlined, or if that is not known
 * because the caller may be a function that is not selected. */
static inline int32_t call_site(const Thread *thread, const void *site, uintptr_t stack) {
    const OpenInvocation *caller = thread->top;
    if ((caller->stack & ~IS_READ_AT_END) == stack) return -1;
    intptr_t offset = (const char *)site - 1 - (const char *)function_address(caller->function);
    return offset >= 0 && offset < caller->size ? (int32_t)offset : -1;
}
/* Open the invocations that began before the program was attached to, as the thread's first: their frames are known by their
 * place on the stack. No event tells their end, so they end at the next event of the thread whose stack stands above. */
void invocations_open_earlier(Thread *thread);
/* The stack stands at this address: invocations whose stack reached deeper have died. */
void invocations_bury(Thread *thread, uintptr_t stack);

#endif
