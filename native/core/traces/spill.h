/* Records in parts, of which memory holds a run: full runs lie in a file, sorted by part, and a part is read from all of them.
 *
 * Ownership: spill_free gives everything back but the file, which is the opener's. Threads: one at a time. Cost: some 30 ns a
 * record and 8 bytes of the file beside it.
 */
#ifndef PERFLAW_TRACES_SPILL_H
#define PERFLAW_TRACES_SPILL_H

#include "json.h"

enum { SPILL_PARTS = 256 };

typedef struct SpillRun {
    uint64_t offset;                /* in the file */
    uint32_t ends[SPILL_PARTS + 1]; /* of a part: where its records begin; those of the next begin at their end */
} SpillRun;

typedef struct Spill {
    int file;           /* descriptor */
    uint32_t run_bytes; /* bytes of a run from which on it is written */
    char *bytes;        /* the run that takes what comes: tag, size and bytes of each record */
    uint8_t *parts;     /* of its records */
    uint32_t size, capacity, count, room, run_count;
    uint64_t file_size;
    SpillRun *runs;
} Spill;

/* Add a record. 0 or errno. */
int spill_add(Spill *spill, uint32_t part, uint32_t tag, Slice bytes);
int spill_is_full(const Spill *spill);
/* Write the run to the file. 0 or errno. */
int spill_write(Spill *spill);
/* Give each record of a part that was written, until `take` gives 0. 0 or errno. */
int spill_read(const Spill *spill, uint32_t part, int (*take)(void *context, uint32_t tag, Slice bytes), void *context);
void spill_free(Spill *spill);

#endif
