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
    int64_t overhead_ns, off_ns, lost_records, foreign_events;
    uint32_t unselected; /* functions that were met and not selected */
} Totals;

/* The process, its command line and the metrics; this comes first. */
void define_process(void);
/* A metric by the number of its lane; a part of the time off the CPU likewise. */
void define_metric(int32_t number, const char *name, const char *unit);
void define_mark(int32_t number, const char *name);
/* A text about one topic, for the manifest of the run. */
void define_text(const char *topic, const char *text);
/* CPU time of something that the manifest knows by this name. */
void define_cpu(const char *what, int64_t ns);
/* The recording begins: the clock, and what the hooks cost. */
void define_start(void);
/* The recording of a process that runs already cannot begin. */
void define_failure(const char *why);
void define_end(const Totals *totals);
/* A function: the file it was loaded from and its offset there. A function that is not selected has number
 * NOT_SELECTED. */
void define_function(int32_t number, const void *function);

/* An invocation of a function began before the program was attached to. */
void define_earlier(int32_t function);
/* A feature of a function. */
void define_feature(int32_t number, int32_t function, const char *name);
/* The uniform sample of a function is one of priorities of at most so many bits. */
void define_sample(int32_t function, uint32_t bits);
/* A dynamic type, known by the address of its virtual table. 0 if that lies in no loaded file; nothing is defined then. */
int define_virtual_table(int32_t number, const void *table);

/* Path of the file that a function was loaded from, under which the recorder finds it, and the address where that file
 * is loaded. `buffer` may be used for the path. */
const char *loaded_file(const void *function, const void **base, char *buffer, size_t size);

#endif
