/* Counters in files of the spool, mapped shared: what a killed program had counted is still there. A file is an array
 * of uint64_t.
 *
 * Ownership: the mappings live as long as the process. Threads: the caller holds the GIL. Cost: a file of 128 kB for
 * every 16,384 counters. */
#ifndef PERFLAW_PYTHON_COUNTS_FILE_H
#define PERFLAW_PYTHON_COUNTS_FILE_H

#include <stdint.h>

/* Begin the counters of this process; nothing is allocated yet. */
void counts_begin(void);
/* So many counters, all 0, and where they are: the file's number and the place in it. If there is no room, NULL, and
 * *obstacle says why. */
uint64_t *counts_allocate(int count, int *file, int *place, const char **obstacle);

#endif
