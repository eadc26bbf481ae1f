/* Which way the branches within a line went, from few events: Python 3.11.
 *
 * The interpreter tells of an instruction if its line differs from that of the instruction before. It looks lines up in
 * an array of its own that it makes for tracing. If an instruction has no line there, nothing is told of it, and the next
 * instruction is told as the begin of a line. So one event for each block of a line is had by taking the line from one
 * instruction of the block; else every instruction of the line would have to be told.
 *
 * Only instructions from which no code can be reached are chosen: they load a constant or a variable. What can be seen
 * of their lines is the traceback where the variable is unbound, which is mended before the program sees it. As soon as
 * anyone sets a trace function, of which an audit hook hears, all lines are put back, and stay so (points_stop). So they
 * are where greenlets are used, because what is known of a frame's last block is kept by thread, and where the program
 * has audit hooks of its own.
 *
 * Ownership: Points belong to their Lines. Threads: the caller holds the GIL. Cost: some passes over the bytecode. */
#ifndef PERFLAW_PYTHON_LINES_POINTS_H
#define PERFLAW_PYTHON_LINES_POINTS_H

#include "branches_find.h"
#include "python/interpreter/positions.h"

#if PY_VERSION_HEX < 0x030C0000

enum Silent { NONE_SILENT, NEXT_SILENT, TARGET_SILENT };

/* What the event of a line at a unit of bytecode tells. */
typedef struct LineEvent {
    int32_t block;     /* offset of the first instruction of the block that it tells of */
    uint16_t ending;   /* as Points.ending */
    uint8_t is_behind; /* it tells of the block of the instruction before, and is no execution of the line */
    uint8_t is_entry;  /* the block begins with it, which may be once more */
    uint8_t by_opcode; /* every instruction of its line has to be told */
} LineEvent;

/* All but `silent` and `of_line` are by unit of bytecode. */
typedef struct Points {
    LineEvent *event;      /* what the event of a line tells, while points are in use: all that follows, in one place */
    int32_t *head;    /* offset of the first instruction of its block; a block lies in one line */
    uint16_t *ending; /* 1 + index of the wanted jump at the end of its block, or of the only one that this leads into;
                       * 0: none, or its line is told otherwise */
    uint8_t *chosen;  /* it loses its line */
    uint8_t *told;    /* its event tells of the block of the instruction before, which lost its line */
    int32_t *line;    /* the line, for what is mended */
    uint8_t *silent;  /* by site: which of its ways no event tells; it went that way if another event comes */
    uint8_t *of_line; /* by line of the code: whether events of blocks tell of its branches */
    int units, first_chosen;
} Points;

/* The points of a code object whose lines are first to first + span - 1. NULL if it has none, or there is no memory. */
Points *points_find(const Branches *branches, const uint8_t *bytes, const Position *positions, int first, int span);
/* NULL is allowed. */
void points_free(Points *points);

/* Take their lines from the chosen instructions. The interpreter has made its array of lines. `restore` puts back the
 * lines of all code (points_restore of each). 0 if nothing is told any more by points in this process. */
int points_apply(PyCodeObject *code, const Points *points, void (*restore)(void));
/* Put the lines of a code object back. */
void points_restore(PyCodeObject *code, const Points *points);
/* Whether points are in use. */
extern int points_in_use;
/* Put the lines of all code back; from here on every instruction of a line with branches is told. */
void points_stop(void);

#endif
#endif
