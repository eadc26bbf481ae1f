/* Trace-event JSON as it comes in pieces: its calls become marks. imports/chrome.py does the same in Python.
 *
 * Ownership: a zeroed Chrome is new; chrome_free gives its memory back. Threads: one at a time. Cost: some 300 ns an event.
 * Whatever a file holds, memory is bounded by its longest event and its different names.
 */
#ifndef PERFLAW_CHROME_H
#define PERFLAW_CHROME_H

#include "marks.h"
#include "names.h"

enum {
    CHROME_FRACTIONS = 1, /* a stamp has a fraction of a µs */
    CHROME_CUT = 2,       /* the array of events has no end */
    CHROME_VIZTRACER = 4,
    CHROME_UFTRACE = 8,
    CHROME_SAMPLES = 16, /* it has samples of stacks */
};
enum { CHROME_MAX_UNIT = 1 << 26, CHROME_MAX_THREADS = 1 << 16, CHROME_MAX_NUMBERS = 1 << 16 };

typedef struct ChromeThread {
    int64_t first;         /* ns, of its first call; NEVER while it has none */
    int64_t last_start, last_end;
    uint32_t has_calls, has_marks; /* complete events; begins and ends */
    uint32_t process;      /* from 0, in the order in which they came */
    uint32_t starts_unordered, ends_unordered;
} ChromeThread;
typedef struct ChromeProcess {
    int64_t first;             /* ns, of its first call */
    uint64_t asynchronous, number_left_out, begun_earlier; /* begun_earlier: of threads with complete events too */
    uint32_t key;              /* number of its identity among `identities` */
    uint32_t name;             /* number of its name among `names`; 0 for none */
} ChromeProcess;

typedef struct Chrome {
    Names names;               /* of events and processes */
    Names number_names;        /* of arguments */
    Names identities;          /* of processes and threads: a letter, and the text as it is written */
    Names process_numbers, thread_numbers; /* 4 and 8 bytes: numbers of identities */
    Names components;          /* 8 bytes: number of a process and of a name that its calls have */
    Names number_uses;         /* 8 bytes: number of a process and of a number's name that its calls have */
    ChromeProcess *processes;
    ChromeThread *threads;
    Marks marks;
    char *held;                /* what is not read yet */
    uint64_t held_size, held_room, wanted, passed, events;
    Slice last_pid, last_tid;  /* as the last event had them, in last_bytes */
    char last_bytes[128];
    uint32_t last_thread;
    uint32_t flags;
    enum { CHROME_BEGIN, CHROME_MEMBERS, CHROME_EVENTS, CHROME_END } state;
    int is_object, is_first, has_events;
    int error;                 /* errno; EBADMSG where the text is not what it should be */
} Chrome;

/* Read a piece of the text. 0 or the error, after which nothing more is read. */
int chrome_feed(Chrome *chrome, const char *piece, uint64_t size);
/* The text has ended. 0 or the error. */
int chrome_finish(Chrome *chrome);
void chrome_free(Chrome *chrome);

#endif
