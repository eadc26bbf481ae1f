/* Features of the innermost invocation, where its entry hook is called.
 *
 * Ownership: the thread's arena. Threads: a thread passes only itself, and is busy meanwhile. Cost: that of read.h, which is
 * left out of the thread's stamps. */
#ifndef PERFLAW_COMPILED_FEATURES_ENTRY_H
#define PERFLAW_COMPILED_FEATURES_ENTRY_H

#include "table.h"

/* Read and write them. known: what the thread knows of the function. place: the address in its code that says what is read,
 * where the hook returns to or the second byte of an injected function. end: likewise for the invocation's end, its third
 * byte, or NULL; if something is to be read there, the invocation gets the bit IS_READ_AT_END. */
void features_at_entry(Thread *thread, KnownFunction *known, const Registers *registers, const void *place, const void *end);
/* Read and write what it returns. */
void features_at_end(Thread *thread, KnownFunction *known, const Registers *registers, const void *end);

#endif
