/* Functions by their address. Each thread has a table of its own, so that no thread waits for another at an event;
 * numbers are given once per process.
 *
 * Ownership: a table belongs to its thread's arena, the numbers to the process. Threads: a thread passes only
 * itself. Cost: a look-up is 2 ns; the first sight of a function in a thread takes a lock, and in the process a line
 * of the definitions file, or a question to the recorder. That time is left out of the thread's stamps. */
#ifndef PERFLAW_COMPILED_FUNCTIONS_H
#define PERFLAW_COMPILED_FUNCTIONS_H

#include "recording.h"

/* Where the thread's table has the function, if nothing else is at its place. */
static inline KnownFunction *function_place(const Thread *thread, const void *function) {
    return &thread->functions[(uint32_t)(((uintptr_t)function * 0x9e3779b97f4a7c15ull) >> 40) & (thread->function_capacity - 1)];
}
/* Make the table of a new thread. 0 if there is no memory. */
int functions_begin(Thread *thread);
/* What the thread knows of a function, which gets its number on first sight. NULL if there is no memory. */
KnownFunction *function_find(Thread *thread, const void *function);
/* Whether no selected function was inlined into another one of the file that this code is part of. */
int functions_are_apart(const void *code);
/* Whether the thread has met the function and it is not selected. */
int function_is_unselected(const Thread *thread, const void *function);
/* Look at an invocation closely, now that the function's countdown is over. Gives its priority (-1: it is not sampled), and
 * whether its features are to be read. */
int32_t function_look(Thread *thread, KnownFunction *known, int64_t now, int *read);
/* The innermost invocation, of this function, began while an observation is sampled, or is_sampled itself. Gives whether its
 * features are to be read because it is the first call of its function within the observation. */
int function_observe(Thread *thread, KnownFunction *known, int64_t now, int is_sampled);

/* How many functions of the process were met and not selected. */
uint32_t functions_unselected(void);
/* In a forked child: forget all numbers. */
void functions_forget(void);

#endif
