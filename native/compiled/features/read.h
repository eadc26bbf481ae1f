/* Reads the features of an invocation where its entry hook is called, as its program says (table.h). No code of the program
 * runs, and no address is trusted: the thread's own stack is read directly, all else is copied by the kernel (memory.h).
 *
 * Ownership: the thread's arena. Threads: a thread passes only itself, and is busy meanwhile. Cost: some 10 ns a feature of
 * registers or the stack; about 1 us for all that lies elsewhere at one distance of pointers. */
#ifndef PERFLAW_COMPILED_FEATURES_READ_H
#define PERFLAW_COMPILED_FEATURES_READ_H

#include "table.h"

/* Read all features of the thread's innermost invocation and write them as records. Gives how many could be read. */
int features_read(Thread *thread, const CallProgram *program, const Registers *registers);

#endif
