/* How often each line of a chosen function was executed, and which way the branches went that lie within one line: exact
 * totals of the process. Chosen are the functions whose branches would be counted: the person's own, or the selected.
 *
 *     lines_count.c    counters of code objects         monitoring.c     their events, Python 3.12 and later
 *     lines_blocks.c   which branches lines do not tell lines_trace.c    the same by a trace function, 3.11
 *     lines_file.c     where the counters live
 *
 * A line is executed where the interpreter comes to it from another line, or from its own end by a jump back: what
 * Python's own `trace` module counts. Ownership: Lines live as long as the process, shared by all code objects that are
 * one component with the same lines (a module loaded anew). Threads: the caller holds the GIL. */
#ifndef PERFLAW_PYTHON_LINES_COUNT_H
#define PERFLAW_PYTHON_LINES_COUNT_H

#include "branches.h"

enum { MOST_BLOCKS = 1024, MOST_LINES = 1 << 20 };

typedef struct Lines {
    uint32_t process;    /* whose counters these are */
    int32_t first, span; /* source lines from the first to first + span - 1 */
    uint64_t *counts;    /* executions of each of them; in the spool */
    uint64_t *outcomes;  /* not taken, taken, of each branch; in the spool */
    Branches *branches;  /* NULL where lines tell all there is */
    int32_t *until;      /* by line: behind the last of its jumps that are wanted, 0 without; NULL without branches */
    int32_t *loops;      /* by unit of bytecode: the line of a jump back into its own line, else 0; NULL where there is none */
    int32_t units;       /* of the bytecode */
    int32_t number;      /* of its component */
    uint64_t signature;  /* of all that tells its code from other code of the component */
    struct Lines *next;
} Lines;

/* Whether lines are counted at all, and the process that counts now: 0 while none does. */
extern int lines_wanted;
extern uint32_t lines_process;

/* The counters of this process begin; nothing is counted from here on: at its end, or in a forked child until that
 * begins (async-signal-safe). */
void lines_begin(void);
void lines_forget(void);
/* Say for the manifest what is not counted; each text once. */
void lines_say(const char *words);
/* Count a function that is recorded from here on. */
void lines_meet(Function *function);
/* The counters of a code object that are not this process's, or not there: made if they are to be. NULL: not counted. */
Lines *lines_again(PyCodeObject *code);

/* The counters of a code object; NULL where it is not counted. */
static inline Lines *lines_of_code(PyCodeObject *code) {
    const Extra *extra = code->co_extra;
    if (function_is_direct && extra && extra->size > function_place) {
        const Function *function = extra->items[function_place];
        if (function && function->lines && function->lines->process == lines_process) return function->lines;
        if (!function || function->mode != ALWAYS) return NULL;
    }
    return lines_again(code);
}

static inline void lines_count(Lines *lines, int line) {
    uint32_t at = (uint32_t)line - (uint32_t)lines->first;
    if (at < (uint32_t)lines->span) lines->counts[at]++;
}

static inline void lines_count_jump(Lines *lines, const Site *site, int jumped) {
    lines->outcomes[2 * site->branch + (jumped == site->taken_by_jump)]++;
}

/* ---- lines_blocks.c ---- */
/* Mark which jumps are wanted; how many branches that are. */
int blocks_choose(Branches *branches, const uint8_t *bytes, const Position *positions);
/* The lines of jumps back into their own line, by unit of bytecode; NULL where there is none, or no memory. */
int32_t *blocks_loops(const uint8_t *bytes, const Position *positions, int units);

/* ---- lines_file.c ---- */
/* The counters of this process begin: nothing is allocated yet. */
void counters_begin(void);
/* Room for so many counters, all 0, and where it is: the file's number and the place in it. NULL where there is none. */
uint64_t *counters_room(int count, int *file, int *place);

/* ---- define.c ---- */
void define_counts(const Lines *lines, const uint8_t *present, int file, int place);

/* ---- monitoring.c or lines_trace.c ---- */
/* Median cost of one event of a line, measured; the loop's code is counted. */
int64_t lines_calibrate(PyObject *loop, PyObject *called, PyObject *calls);

#endif
