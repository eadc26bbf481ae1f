/* Counters for metrics, kept only if the person asks for them. Each is a sum over the calling thread since it began.
 *
 * Ownership: thread-local; they need no memory of their own. Threads: any, with or without the GIL. Cost: 1 to 2 ns an
 * allocation, two readings of the clock a lock. */
#ifndef PERFLAW_PYTHON_COUNTERS_H
#define PERFLAW_PYTHON_COUNTERS_H

#include <stdint.h>

/* What Python's object and memory allocators gave out; a reallocation counts with its full new size. Always 1. */
int counters_start_allocations(void);
void counters_stop_allocations(void);
int64_t counters_allocated_bytes(void);
int64_t counters_allocated_blocks(void);

/* ns in acquire() of Python's locks, of acquisitions long enough to have waited. 0 if this interpreter's locks
 * differ. */
int counters_start_locks(void);
void counters_stop_locks(void);
int64_t counters_lock_wait_ns(void);

/* ns in garbage collections, which collections.c adds up; it says whether they are told at all. */
void counters_allow_collections(void);
int counters_start_collections(void);
void counters_add_collection(int64_t ns);
int64_t counters_collection_ns(void);

#endif
