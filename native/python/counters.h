/* Counters that are kept only where the person asked for them: each a sum over the calling thread since it began.
 *
 * Ownership: thread-local, no memory of their own. Threads: any, with or without the GIL. Cost: 1 to 2 ns an allocation,
 * two clock readings a lock. */
#ifndef PERFLAW_PYTHON_COUNTERS_H
#define PERFLAW_PYTHON_COUNTERS_H

#include <stdint.h>

/* What Python's object and memory allocators gave out; a reallocation counts with its full new size. */
int counters_start_allocations(void);
int64_t counters_bytes(void);
int64_t counters_blocks(void);

/* ns in acquire() of Python's locks, where it took longer than an acquisition that need not wait. */
int counters_start_locks(void);
int64_t counters_lock_wait(void);

#endif
