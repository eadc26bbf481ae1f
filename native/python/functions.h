/* What is known of a code object, kept with it: found by one look into the object, and freed with it.
 *
 * Ownership: the code object's. Threads: the caller holds the GIL. Cost: function_of is two loads once the function
 * was met; on first sight it is classified, which takes some microseconds that are left out of stamps. */
#ifndef PERFLAW_PYTHON_FUNCTIONS_H
#define PERFLAW_PYTHON_FUNCTIONS_H

#include "python/counts/lines.h"
#include "recording.h"

/* 0 if this interpreter has no room for ours in its code objects. */
int functions_start(void);
/* Forget what an earlier recording of this process learnt of functions, and choose anew which are recorded. */
void functions_forget(void);
/* Have no further events told of the code of functions. */
void functions_stop(void);
/* Make the code of all functions as quick as it was before the recording, which has ended. Other threads get the GIL in
 * between. */
void functions_settle(void);
/* Take another tool identifier by `move`, and have the events of the code of functions told there. 0 if that failed. */
int functions_move(int (*move)(void));

/* ---- lookups ---- */

/* Layout of co_extra, and our place in it. */
typedef struct Extra {
    Py_ssize_t size;
    void *items[1];
} Extra;
extern Py_ssize_t function_place;
extern int function_is_direct; /* whether this interpreter's co_extra has that layout */

/* The slow way of function_of. */
Function *function_find(Frame *frame);
/* The function that a frame executes, classified on first sight; NULL if there is no memory. */
static inline Function *function_of(Frame *frame) {
    const Extra *extra = frame_code(frame)->co_extra;
    if (function_is_direct && extra && extra->size > function_place && extra->items[function_place])
        return extra->items[function_place];
    return function_find(frame);
}
/* The function of a code object that no frame executes yet, not classified; NULL if there is no memory. */
Function *function_of_code(PyCodeObject *code);

/* The number of its component, defined on first sight in this process; 0 if there are too many. */
int32_t function_define(Function *function);

/* ---- counters of lines ---- */

/* Give the instructions of all code back the lines that were taken from them (lines_points.h, Python 3.11). */
void functions_restore_lines(void);

/* The slow way of function_lines. */
Lines *function_find_lines(PyCodeObject *code);
/* The counters of a code object in this process, made if they are to be; NULL if its lines are not counted. */
static inline Lines *function_lines(PyCodeObject *code) {
    const Extra *extra = code->co_extra;
    if (function_is_direct && extra && extra->size > function_place) {
        const Function *function = extra->items[function_place];
        if (function && function->lines && function->lines->process == lines_process) return function->lines;
        if (!function || !function_counts_inside(function)) return NULL;
    }
    return function_find_lines(code);
}

#endif
