/* How often each line of a chosen function was executed, and which way the branches within a line went: exact totals of
 * the process. Chosen are the functions whose branches would be counted: the person's own, or the selected ones.
 *
 *     lines.c         counters of code objects               monitoring.c   their events, Python 3.12 and later
 *     lines_blocks.c  which branches lines do not tell       lines_trace.c  the same by a trace function, 3.11
 *     counts_file.c   where the counters are         lines_points.c  few events that tell of a line's branches, 3.11
 *
 * A line is executed when the interpreter comes to it from another line, or from its own end by a jump back. Python's
 * `trace` module counts the same.
 *
 * Ownership: Lines live as long as the process, and are shared by all code objects that are one component with the
 * same lines (a module that is loaded anew). Threads: the caller holds the GIL. Cost: an execution is one increment. */
#ifndef PERFLAW_PYTHON_LINES_H
#define PERFLAW_PYTHON_LINES_H

#include "branches_find.h"
#include "lines_points.h"
#include "python/recording.h"

enum { MAX_BLOCKS = 1024, MAX_LINES = 1 << 20 };

typedef struct Lines {
    uint32_t process;    /* the process that the counters are of */
    int32_t first, span; /* the source lines are first to first + span - 1 */
    uint64_t *counts;    /* executions of each line; in the spool */
    uint64_t *outcomes;  /* not taken and taken, of each branch; in the spool */
    Branches *branches;  /* NULL if lines tell everything */
    struct Points *points; /* what tells of branches instead of every instruction (3.11); NULL if nothing does */
    /* by unit of bytecode: number of instructions from it to the end of its line, without those up to the last wanted
     * jump, which are told one by one; NULL without memory */
    uint8_t *ahead;
    int32_t *until;      /* by line: the offset behind the last wanted jump, 0 if there is none; NULL without branches */
    /* by unit of bytecode: the line, if it is a jump back into its own line, else 0; NULL if none is */
    int32_t *loops;
    int32_t units;       /* of the bytecode */
    int32_t number;      /* of its component */
    uint64_t signature;  /* hash of what tells its code from other code of the component */
    struct Lines *next;
} Lines;

/* Whether lines are counted at all, and the process that counts now; 0 while none does. */
extern int lines_wanted;
extern uint32_t lines_process;

/* Begin the counters of this process. */
void lines_begin(void);
/* Count nothing from here on: at the end, or in a forked child until it begins. Async-signal-safe. */
void lines_stop(void);
/* Count the lines of a function that is recorded from here on. */
void lines_of_function(Function *function);
/* Add a note about what is not counted to the manifest; each note once. */
void lines_note(const char *note);

static inline void lines_count(Lines *lines, int line) {
    uint32_t at = (uint32_t)line - (uint32_t)lines->first;
    if (at < (uint32_t)lines->span) lines->counts[at]++;
}

static inline void lines_count_jump(Lines *lines, const Site *site, int jumped) {
    lines->outcomes[2 * site->branch + (jumped == site->taken_by_jump)]++;
}

#endif
