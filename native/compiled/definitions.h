/* Lines of the definitions file, which say what the numbers in the records stand for (record/tree/records.py reads
 * them).
 *
 * Ownership: nothing is kept. Threads: any; a lock admits one line at a time. Cost: a line is an open, a write and a
 * close. If a line cannot be written, the recording stops. */
#ifndef PERFLAW_COMPILED_DEFINITIONS_H
#define PERFLAW_COMPILED_DEFINITIONS_H

#include "recording.h"

/* Totals over all threads, for the last line. */
typedef struct Totals {
    int64_t overhead_ns, lost_records, foreign_events;
    uint32_t unselected; /* functions that were met and not selected */
} Totals;

/* The process, its command line and the metrics; this comes first. */
void define_process(void);
/* A text about one topic, for the manifest of the run. */
void define_text(const char *topic, const char *text);
/* The recording begins: the clock, and what the hooks cost. */
void define_start(void);
void define_end(const Totals *totals);
/* A function: the file it was loaded from and its offset there. A function that is not selected has number
 * NOT_SELECTED. */
void define_function(int32_t number, const void *function);

/* Path of the file that a function was loaded from, under which the recorder finds it, and the address where that file
 * is loaded. `buffer` may be used for the path. */
const char *loaded_file(const void *function, const void **base, char *buffer, size_t size);

#endif
