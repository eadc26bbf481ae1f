/* The branches of a code object, from its bytecode and the source positions of its instructions.
 *
 * An outcome is "taken" if the way leads into what the condition guards: the body of if, elif, while, for, except or
 * case, or the first choice of `x if c else y`. For assert, and for `and` and `or` within a value, the tested part is
 * then true. Copies of one condition that the compiler made (of while, of finally) are one branch.
 *
 * Ownership: the caller's, until branches_free. Threads: the caller holds the GIL. Cost: two passes over the
 * bytecode. */
#ifndef PERFLAW_PYTHON_BRANCHES_FIND_H
#define PERFLAW_PYTHON_BRANCHES_FIND_H

#include "python/interpreter/frames.h"

/* Most branches of a function whose outcomes are counted per invocation; most conditional jumps that one branch may
 * have. */
enum { MAX_BRANCHES = 64, SITES_PER_BRANCH = 4 };

/* A conditional jump. Offsets are in bytes. */
typedef struct Site {
    int32_t offset, next, target; /* where it is; where it goes on if it does not jump, and if it does */
    int16_t branch;
    uint8_t taken_by_jump;
    uint8_t when_true; /* it jumps if its value is true (or is not None), not if it is false (or is None) */
    uint8_t kept;      /* the tested value is also what the expression comes to: `a or b` within a value */
    uint8_t first;     /* it is the first of its branch, and the others are copies */
    uint8_t wanted;    /* its outcomes are counted over the whole run (lines_blocks.c) */
} Site;

/* A condition of the source, with one or more sites. */
typedef struct Branch {
    int32_t line, rank; /* its source line, and which branch of that line it is, from 1 */
    int32_t number[2];  /* of the features not_taken and taken in this process's definitions; 0 until they are defined */
} Branch;

typedef struct Branches {
    uint32_t process;               /* the process that the numbers of its branches are of */
    int16_t count, sites, capacity; /* branches, jumps, and how many branches there may be */
    int32_t units;                  /* of the bytecode */
    uint16_t *site_at;              /* by unit of bytecode: 1 + the index of its site, 0 if it is no site */
    Site *site;
    Branch *branch;
} Branches;

/* The first `max` branches of a code object; NULL if it has none or there is no memory. *left_out: why some are
 * missing, NULL if none is. Never raises. */
Branches *branches_find(PyCodeObject *code, int max, const char **left_out);
/* NULL is allowed. */
void branches_free(Branches *branches);

static inline const Site *branches_site(const Branches *branches, int32_t offset) {
    int32_t unit = offset / (int32_t)sizeof(_Py_CODEUNIT);
    int index = unit >= 0 && unit < branches->units ? branches->site_at[unit] : 0;
    return index ? &branches->site[index - 1] : NULL;
}

#endif
