/* The hooks that functions call, and the first of them, which is called when they begin. What the recorder says of their arguments is true of the registers at that
 * call, so they are kept before anything here changes them.
 *
 * Ownership: none. Threads: any. Cost: some 3 ns beyond what is done with the event. */
#ifndef PERFLAW_COMPILED_ENTRY_H
#define PERFLAW_COMPILED_ENTRY_H

#include "features/table.h"

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

/* What the hook calls: a function begins, in the usual case; 0: it is not usual. Then, with all registers kept: it begins; gives
 * whether its features are to be read. Then: read them. */
int entry_quick(void *function, void *site, uintptr_t stack);
int entry_begin(void *function, void *site, uintptr_t stack);
void entry_read(const Registers *registers);

#endif
