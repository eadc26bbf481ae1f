/* Features of one invocation, read at its entry without running any of the target's code.
 *
 * The first calls of a function explore what its arguments hold; from then on a fixed program of guarded steps reads it.
 * Ownership: a Program belongs to its function. Threads: the caller holds the GIL. Cost: 20 to 50 ns a feature, and
 * about 2 us a call while it explores.
 */
#ifndef PERFLAW_PYTHON_FEATURES_H
#define PERFLAW_PYTHON_FEATURES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

typedef struct Program Program;

/* Where a frame starts: what the interpreter has in its hands, all borrowed. */
typedef struct Entry {
    PyCodeObject *code;
    PyObject *const *locals; /* co_localsplus: parameters first; an item may be NULL, or a cell around the value */
    PyObject *globals;       /* an exact dict, or NULL */
    PyObject *closure;       /* tuple of cells in the order of co_freevars, or NULL */
} Entry;

/* Who takes the features: the recorder. None of these fails or runs code of the target's. */
typedef struct Sink {
    void *context;
    /* Number of a feature of the function at hand, defined on first sight. name: UTF-8, such as "items.len". */
    int32_t (*number)(void *context, const char *name);
    /* Number of a dynamic type, defined on first sight. */
    int32_t (*type)(void *context, PyTypeObject *type);
    void (*put)(void *context, int32_t number, double value);
} Sink;

/* Read all features into the sink. *program starts as NULL. A pending exception of the target's stays as it is. */
void features_read(Program **program, const Entry *entry, const Sink *sink);
/* Forget a program (NULL is allowed). */
void features_free(Program *program);

#endif
