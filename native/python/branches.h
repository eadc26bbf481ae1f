/* Outcomes of branches: which way each conditional jump of a chosen function went, counted by invocation.
 *
 *     branches_find.c   which branches a code object has       monitoring.c       their events, Python 3.12 and later
 *     branches.c        counters of the open invocations       branches_trace.c   the same by instructions, 3.11
 *
 * An outcome is "taken" where the way leads into what the condition guards: the body of if, elif, while, for, except or
 * case, the first choice of `x if c else y`. Of assert, and of `and` and `or` within a value: the tested part is true.
 * Copies of one condition that the compiler made (of while, finally) are one branch.
 *
 * Ownership: Branches belong to their function, a Counting to the invocation it counts. Threads: the caller holds the
 * GIL. Memory: at most MOST_BRANCHES a function, MOST_COUNTING bytes of counters. */
#ifndef PERFLAW_PYTHON_BRANCHES_H
#define PERFLAW_PYTHON_BRANCHES_H

#include "tracer.h"

enum { MOST_BRANCHES = 64, SITES_A_BRANCH = 4, MOST_COUNTING = 32 << 20 };

/* Of an instruction in the source, as co_positions(): -1 where it has none. */
typedef struct Position {
    int line, column, end_line, end_column;
} Position;
/* lines.c: of every unit of bytecode. */
void positions_of(PyCodeObject *code, Position *positions, int units);

/* A conditional jump. Offsets are in bytes. */
typedef struct Site {
    int32_t offset, next, target; /* where it goes on if it does not jump, and if it does */
    int16_t branch;
    uint8_t taken_by_jump;
    uint8_t when_true; /* it jumps where its value is true (is not None), and not where it is false (is None) */
    uint8_t kept;      /* what is tested is what the expression comes to as well: `a or b` within a value */
    uint8_t first;     /* the first of its branch: the others are copies */
    uint8_t wanted;    /* its outcomes are counted over the whole run (lines_blocks.c) */
} Site;

/* A condition of the source, of one or more sites. */
typedef struct Branch {
    int32_t line, rank;  /* its source line, and which branch of that line it is: 1, 2, … */
    int32_t number[2];   /* of the features not_taken and taken in this process's definitions; 0: not yet defined */
} Branch;

typedef struct Branches {
    uint32_t process;    /* whose numbers these are */
    int16_t count, sites, most; /* branches, jumps, and how many branches there may be */
    int32_t units;       /* of the bytecode */
    uint16_t *site_at;   /* by unit of bytecode: 1 + number of the site, 0 where there is none */
    Site *site;
    Branch *branch;
} Branches;

/* The counters of one invocation. */
typedef struct Counting {
    Frame *frame;
    Function *function;
    struct Counting *next;
    const Site *last; /* the instruction before was this jump (3.11) */
    int lost;         /* not all was seen */
    int count;        /* of branches */
    uint64_t counts[]; /* not taken, taken, of each branch */
} Counting;

/* Whether outcomes are counted at all. */
extern int branches_wanted;

void branches_start(void);
/* The first `most` branches of a code object; NULL where it has none or there is no memory. *left_out: why some are missing,
 * NULL where none is. Never raises. */
Branches *branches_find(PyCodeObject *code, int most, const char **left_out);
void branches_drop(Branches *branches);
/* Say for the manifest what is not counted; each text once. */
void branches_say(const char *words);
/* Find the branches of a function that is recorded from here on. */
void branches_meet(Function *function);
void branches_free(Function *function);

/* An invocation begins that is counted; one that is not, whose frame may lie where a forgotten one lay. */
void branches_open(Function *function, Frame *frame);
void branches_forget(const Frame *frame);
/* The counters of the invocation; NULL where it is not counted. */
Counting *branches_of(const Frame *frame);
/* The invocation ends: write what was counted, before its EXIT. */
void branches_tell(Thread *thread, const Frame *frame);

static inline const Site *branches_site(const Branches *branches, int32_t offset) {
    int32_t unit = offset / (int32_t)sizeof(_Py_CODEUNIT);
    int found = unit >= 0 && unit < branches->units ? branches->site_at[unit] : 0;
    return found ? &branches->site[found - 1] : NULL;
}

static inline void branches_count(Counting *counting, const Site *site, int jumped) {
    counting->counts[2 * site->branch + (jumped == site->taken_by_jump)]++;
}

/* ---- monitoring.c or branches_trace.c ---- */
/* Have events of this function's code told (Python 3.12 and later), beside those that are already. */
enum Watch { WATCH_BRANCHES = 1, WATCH_LINES = 2, WATCH_JUMPS = 4 };
void events_watch(Function *function, int what);
/* Median cost of one event of a branch (3.12 and later) or of an instruction (3.11), measured. */
int64_t branches_calibrate(PyObject *loop, PyObject *called, PyObject *calls);

#endif
