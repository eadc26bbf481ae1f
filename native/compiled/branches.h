/* Outcomes of branches, of programs that call a function in every block of their code (perflaw/branches.h): which way each
 * conditional jump went, counted in the invocations whose features are read.
 *
 * The recorder says which blocks can follow each other in a function, and which outcomes that means (record/compiled/branches.py
 * has the same layout):
 *
 *     | BranchHead | Range ... | Site ... | Edge ... | outcomes of edges | names of outcomes | texts |
 *
 * A site is where the call in a block returns to; site 0 is what lies outside of the function. An edge leads from one site to
 * the next one that is reached. Of an invocation in which one site follows another that cannot, nothing is told.
 *
 * Ownership: a BranchTable belongs to the process, a Counting to its thread's arena. Threads: any. Cost: 1 ns a block of
 * invocations that are not counted, some 7 ns of others; the first invocation of a function waits for the recorder. */
#ifndef PERFLAW_COMPILED_BRANCHES_H
#define PERFLAW_COMPILED_BRANCHES_H

#include "recording.h"

typedef struct BranchTable BranchTable;

/* The outcomes of one invocation. */
typedef struct Counting {
    struct Counting *outer;
    const BranchTable *table;
    int64_t frame;   /* its identity in the records */
    uintptr_t stack; /* where the stack stood when it began */
    int64_t blocks;
    uint32_t last;     /* the last site */
    int is_incomplete; /* it cannot be told which way it went */
    uint64_t counts[]; /* of each edge, then room for the sum of each outcome */
} Counting;

/* Begin to count if the recorder asks for it, once per process. */
void branches_start(void);
/* In a forked child. */
void branches_forget(void);
/* Whether branches are counted at all. */
extern int branches_wanted;
extern int64_t branches_block_ns_256; /* what counting a block costs, in 256ths of a nanosecond */

/* The innermost invocation is one that is counted. Gives whether its function has branches. */
int branches_begin(Thread *thread, const void *function, int32_t function_number);
/* It ends: write its counts, before its EXIT. */
void branches_end(Thread *thread, int64_t frame);
/* Forget what is counted of a thread's invocations. */
void branches_drop(Thread *thread);
/* Measure what counting costs. */
void branches_calibrate(Thread *thread);
/* No block is to call us any more. */
void branches_finish(void);

/* What counting the blocks of an invocation has cost beyond not counting them, in ns. */
static inline int64_t branches_cost(const Thread *thread, int64_t frame) {
    const Counting *counting = thread->counting;
    return counting && counting->frame == frame ? counting->blocks * branches_block_ns_256 >> 8 : 0;
}

#endif
