/* The functions that are open on the stack of the calling thread, as the tables for unwinding (.eh_frame) tell them.
 *
 * Nothing is trusted that the stack holds: only words of the thread's own stack are read, and the way ends where a table is
 * missing, has what is not known here, or leads anywhere but upwards. So a wrong table of a library means frames that are not
 * found, and nothing worse.
 *
 * Ownership: none. Threads: any. Cost: some microseconds a frame. */
#ifndef PERFLAW_COMPILED_INJECT_UNWINDING_H
#define PERFLAW_COMPILED_INJECT_UNWINDING_H

#include <stdint.h>

typedef struct OpenFrame {
    const char *function; /* its first byte, and so of no part that the compiler has put elsewhere */
    uintptr_t slot;       /* where its return address stands */
    const void *returns;  /* that address, also where our exit stub's stands there */
} OpenFrame;

/* The frames of functions that are wanted, the innermost first, at most `most`; `high`: the end of the stack. Gives how many. */
int frames_find(uintptr_t high, int (*is_wanted)(const char *function), OpenFrame *found, int most);

#endif
