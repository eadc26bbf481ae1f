/* Which loaded files are injected. The recorder says which functions of a file are recorded and how they are patched; of most
 * files that is none, and they are not asked for.
 *
 * Ownership: the process. Threads: one. Cost: the recorder's answers, some milliseconds where it has kept the patches of a
 * file, else some 0.5 ms a function. */
#ifndef PERFLAW_COMPILED_INJECT_MODULES_H
#define PERFLAW_COMPILED_INJECT_MODULES_H

#include "patches.h"

/* Prepare stubs for the program, and for its libraries if the recorder's setting INJECT is `libraries`; have each file's jumps
 * written by `write`. NULL, or why nothing can be injected. */
const char *modules_inject(const char *wanted, WriteJumps write);
/* Whether files were loaded or unloaded since they were looked at. Cost: some 100 ns. */
int modules_have_changed(void);
/* Do the same for libraries that were loaded since, while the program runs. Those that were unloaded are forgotten; where another
 * one lies then, nothing is injected, because addresses mean functions of the first one. */
void modules_follow(WriteJumps write);

#endif
