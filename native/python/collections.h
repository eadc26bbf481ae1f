/* Collections of garbage as a pseudo-callee, see collections.c.
 * Ownership: one hidden list a process. Threads: the GIL. Cost: 0.5 µs a collection, most of it the interpreter's two dicts. */
#ifndef PERFLAW_PYTHON_COLLECTIONS_H
#define PERFLAW_PYTHON_COLLECTIONS_H

#include <stdint.h>

/* Be told of collections from now on; 0 if this interpreter keeps its callbacks otherwise. Again is harmless. */
int collections_start(void);
/* Give the interpreter the program's list back. */
void collections_stop(void);
/* ns of collections in the calling thread so far. */
int64_t collections_ns(void);

#endif
