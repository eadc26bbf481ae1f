/* Which branches the counts of lines do not tell: those that divide a line into several blocks.
 *
 * Ownership: the caller's. Threads: any. Cost: one walk per way of each branch. */
#ifndef PERFLAW_PYTHON_LINES_BLOCKS_H
#define PERFLAW_PYTHON_LINES_BLOCKS_H

#include "branches_find.h"
#include "python/interpreter/positions.h"

/* Mark the sites whose outcomes are wanted. Gives how many branches that are. */
int blocks_choose(Branches *branches, const uint8_t *bytes, const Position *positions);
/* Whether the code does not go on behind an instruction: a jump, a return, an exception. */
int blocks_ends(int op);
/* By unit of bytecode: its line, if it is a jump back into its own line, else 0. NULL if there is none, or no
 * memory. */
int32_t *blocks_find_loops(const uint8_t *bytes, const Position *positions, int units);

#endif
