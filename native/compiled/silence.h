/* Functions that are not selected were built with calls of the hooks all the same. What such calls cost can only be estimated,
 * and a function that makes thousands of them is shorter than the error of that. So they are taken out of the program's code: a
 * call becomes an instruction that does nothing, a jump to the exit hook a return.
 *
 * A place in the code is changed only if it is certain which instruction has led to the hook, and if the process has one thread, so
 * that no other executes what is written. In another function's code, into which it was inlined, compilers let functions share a
 * call: there it is changed only if no selected function was inlined in that file. Elsewhere the hooks go on being called, and are counted (recording.h).
 *
 * Ownership: none; a program that runs already is left as it is. Threads: a thread passes only itself. Cost: 5 us for each place,
 * once. */
#ifndef PERFLAW_COMPILED_SILENCE_H
#define PERFLAW_COMPILED_SILENCE_H

#include "recording.h"

/* A hook was called for a function that is not selected, and returns to this place. */
void silence(Thread *thread, const void *function, const char *returns, const void *hook, int is_exit);

#endif
