/* Functions that Frida's Interceptor enters, instead of jumps of ours (--native=frida).
 *
 * The recorder attaches Frida while the program waits for an answer, before its main function, and has the Interceptor call a
 * few lines of C (record/compiled/frida.py) that call what is here. Only the beginning of a call is Frida's: it would keep
 * return addresses in a list of its own, which exceptions and longjmp pass over, and then return to wrong places. Ours are in
 * the mirror (mirror.h) and lead to our exit.
 *
 * Ownership: none. Threads: any. Cost: what Frida's way to here takes, some 100 ns a call. */
#ifndef PERFLAW_COMPILED_INJECT_FRIDA_H
#define PERFLAW_COMPILED_INJECT_FRIDA_H

#include "compiled/features/table.h"

#define CALLED_BY_FRIDA __attribute__((visibility("default")))

/* A function begins; `slot`: where its return address stands. Gives whether its features are to be read. */
CALLED_BY_FRIDA int perflaw_frida_enter(const void *function, uintptr_t *slot);
/* Read them. Frida does not keep vector registers: whoever calls this has filled them with NaN, which is no feature. */
CALLED_BY_FRIDA void perflaw_frida_read(const void *function, const Registers *registers);
/* A function that does nothing, for calibration. */
CALLED_BY_FRIDA void perflaw_frida_empty(void);

#endif
