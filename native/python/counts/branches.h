/* Outcomes of branches: which way each conditional jump of a chosen function went, counted per invocation.
 *
 *     branches_find.c  which branches a code object has      monitoring.c      their events, Python 3.12 and later
 *     branches.c       counters of the open invocations      branches_trace.c  the same by instructions, 3.11
 *
 * Ownership: Branches belong to their function, a Counting to the invocation whose outcomes it counts. Threads: the
 * caller holds the GIL. Memory: at most MAX_COUNTING_BYTES of counters. Cost: an outcome is one increment; the
 * counters of an invocation are found by a hash of its frame. */
#ifndef PERFLAW_PYTHON_BRANCHES_H
#define PERFLAW_PYTHON_BRANCHES_H

#include "branches_find.h"
#include "python/recording.h"

enum { MAX_COUNTING_BYTES = 32 << 20 };

/* The counters of one invocation. */
typedef struct Counting {
    Frame *frame;
    Function *function;
    struct Counting *next;
    const Site *last;  /* the jump that the instruction before was (3.11) */
    int is_incomplete; /* some outcomes were not seen */
    int count;         /* of branches */
    uint64_t counts[]; /* not taken and taken, of each branch */
} Counting;

/* Whether outcomes are counted at all. */
extern int branches_wanted;

/* Begin to count if the settings say so. */
void branches_start(void);
/* Find the branches of a function that is recorded from here on. */
void branches_of_function(Function *function);
/* Forget a function's branches and the counters of its invocations. */
void branches_forget_function(Function *function);

/* An invocation begins that is counted. */
void counting_begin(Function *function, Frame *frame);
/* An invocation begins that is not counted; its frame may lie where that of a forgotten one lay. */
void counting_forget(const Frame *frame);
/* The counters of an invocation; NULL if it is not counted. */
Counting *counting_of(const Frame *frame);
/* An invocation ends: write its counts as features, before its EXIT. */
void counting_write(Thread *thread, const Frame *frame);

static inline void counting_add(Counting *counting, const Site *site, int jumped) {
    counting->counts[2 * site->branch + (jumped == site->taken_by_jump)]++;
}

#endif
