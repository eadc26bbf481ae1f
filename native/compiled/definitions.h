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
/* Where an address of code or data was loaded from. The loader is asked, which takes its lock. A thread that opens a
 * library holds that lock while constructors run, and these may meet new functions: so nobody may look a place up who
 * holds a lock of ours. */
typedef struct LoadedPlace {
    const char *file;     /* its path, under which the recorder finds it; empty if the address lies in no loaded file */
    const void *base;     /* where the file is loaded, with the high bits of the address; NULL if that lies in no loaded file */
    const char *symbol;   /* the exported name that it lies in; empty if there is none */
    int is_symbol_start;  /* it is the symbol's own address */
    char buffer[4096];    /* may hold the path */
} LoadedPlace;
void loaded_place(const void *address, LoadedPlace *place);
/* A function: the file it was loaded from and its offset there. A function that is not selected has number
 * NOT_SELECTED. */
void define_function(int32_t number, const void *function, const LoadedPlace *place);

/* An invocation of a function began before the program was attached to. */
void define_earlier(int32_t function);
/* A feature of a function. */
void define_feature(int32_t number, int32_t function, const char *name);
/* The uniform sample of a function is one of priorities of at most so many bits. */
void define_sample(int32_t function, uint32_t bits);
/* A dynamic type, known by the address of its virtual table. 0 if that lies in no loaded file; nothing is defined then. */
int define_virtual_table(int32_t number, const void *table, const LoadedPlace *place);

#endif
