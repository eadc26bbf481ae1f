/* Source positions of bytecode, decoded from co_linetable (Objects/locations.md of CPython 3.11 to 3.13).
 *
 * PyCode_Addr2Line would walk the table anew for every offset, and co_lines() makes tuples, which wakes the collector.
 * Ownership: none. Threads: the caller holds the GIL. Cost: one pass over the table. */
#ifndef PERFLAW_PYTHON_POSITIONS_H
#define PERFLAW_PYTHON_POSITIONS_H

#include "frames.h"

#include "python/text.h"

/* Position of an instruction in the source, as co_positions() gives it; -1 stands for None. */
typedef struct Position {
    int line, column, end_line, end_column;
} Position;

/* The position of every unit of bytecode. */
void positions_of(PyCodeObject *code, Position *positions, int units);
/* Append the lines of a code object's bytecode to a text as co_lines() gives them: "(first offset, last offset,
 * line), " for each range. */
void positions_add_lines(PyCodeObject *code, Text *text);

#endif
