/* Where the return addresses of injected functions are kept, while the stack holds the address of the exit stub instead.
 *
 * The return address that stood at an address of the stack is kept at a fixed distance from it. So the unwinder, whom the exit
 * stub tells this distance, finds it without us: exceptions, backtraces and the cancellation of threads pass injected
 * functions as they pass others. A longjmp leaves nothing behind that would have to be removed.
 *
 * Ownership: the process; a mirror is never given back, and a forked child has its own copy. Threads: any. Cost: one store or
 * load; the first use of a megabyte of stack is a mapping. */
#ifndef PERFLAW_COMPILED_INJECT_MIRROR_H
#define PERFLAW_COMPILED_INJECT_MIRROR_H

/* 16 TB: below programs, their libraries and their stacks, there is nothing. stubs.c has it for the unwinder. */
#define MIRROR_DISTANCE 0x100000000000

#ifndef __ASSEMBLER__

#include "compiled/recording.h"

static inline uintptr_t *mirror_of(uintptr_t slot) { return (uintptr_t *)(slot - MIRROR_DISTANCE); }

/* Make or find the directory of the mirror, once per process; `leave`: our exit stub. 0 if something else lies there. */
int mirror_start(uintptr_t leave);
/* Whether an address is the exit stub of any copy of this library in the process. Cost: 1 ns a copy. */
int mirror_leaves(uintptr_t returns);
extern int mirror_has_copies; /* whether there are others than this one */
/* Whether an address may be the exit stub of a copy, as copies of one build are loaded to whole pages. `leave`: of one of them.
 * Where a copy of another build has its stub at another place in the page, no event takes the quick way. */
static inline int mirror_may_leave(uintptr_t returns, uintptr_t leave) { return !((returns ^ leave) & 4095); }
/* What other recorders see of this copy: whether it records, ends that, or can record again when a thread calls `attach`. */
enum CopyState { COPY_RECORDS, COPY_IS_FREE, COPY_ENDS };
void mirror_offer(enum CopyState state, uintptr_t attach, uint64_t build);
/* Have a mirror of the thread's stack down to this address. 0 if there can be none. */
int mirror_reach(Thread *thread, uintptr_t slot);
/* In a forked child. */
void mirror_forget(void);

/* Keep a copy of these rows (Jump of patches.h), so that a later recorder finds the jumps of one that was killed. A row begins
 * with the address of its jump, and at `original` has the bytes that belong there. What was kept of earlier recordings and is
 * taken back is forgotten. */
void jumps_note(const void *rows, uint64_t count, uint64_t row_size, uint64_t original);
/* The recording is over: forget the jumps that are taken back. Gives whether all are. */
int jumps_end(uint64_t row_size, uint64_t original);
/* Its recorder is gone: a later one takes back those that are left. */
void jumps_leave(void);

#endif

#endif
