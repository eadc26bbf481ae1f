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
/* Have the recorder attach Frida to those functions instead (frida.h). NULL, or why that cannot be. Cost: some 0.5 s. */
const char *modules_attach_frida(const char *wanted);
/* Whether files were loaded or unloaded since they were looked at. Cost: some 100 ns. */
int modules_have_changed(void);
/* Do the same for libraries that were loaded since, while the program runs. The jumps of those that were unloaded have gone with
 * their memory. */
void modules_follow(WriteJumps write);
/* From now on, inject libraries as soon as they are loaded, before their constructors run: the loader calls an empty function of
 * its own at every change of its list of files, for debuggers to stop there, and that jumps to us then. NULL, or why that cannot
 * be. The program has one thread. */
const char *modules_watch(void);

#endif
