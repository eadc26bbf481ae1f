/* What a thread waits for: the blocking functions of the interpreter's own modules, by kind.
 *
 * Ownership: the sums are thread-local. Threads: any, with or without the GIL; waits_look and waits_stop need it. Cost: two readings
 * of the clock a call of such a function. */
#ifndef PERFLAW_PYTHON_WAITS_H
#define PERFLAW_PYTHON_WAITS_H

#include <stdint.h>

enum WaitKind { WAITS_SLEEP, WAITS_LOCK, WAITS_IO, WAITS_NETWORK, WAITS_CHILD, WAITS_KINDS };

/* The name of a kind: "sleep". */
const char *waits_name(int kind);
/* Put ours in place of the blocking functions of modules that the program has imported by now. Imports nothing. */
void waits_look(void);
/* Put the program's own functions back in their places. */
void waits_stop(void);
/* ns that the calling thread spent in functions of a kind, of calls long enough to have waited. */
int64_t waits_ns(int kind);

#endif
