/* Features of one invocation, read at its entry without running any of the program's code.
 *
 * The first calls of a function explore what its arguments hold; from then on a fixed program of guarded steps reads
 * it. Ownership: a FeatureProgram belongs to its function. Threads: the caller holds the GIL. Cost: 20 to 50 ns a
 * feature, and about 2 us a call while the function is explored.
 */
#ifndef PERFLAW_FEATURES_H
#define PERFLAW_FEATURES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

typedef struct FeatureProgram FeatureProgram;

/* What the interpreter has at hand when a function begins; all of it is borrowed. */
typedef struct CallEntry {
    PyCodeObject *code;
    PyObject *const *locals; /* co_localsplus, parameters first; an item may be NULL, or a cell around the value */
    PyObject *globals;       /* an exact dict, or NULL */
    PyObject *closure;       /* tuple of cells in the order of co_freevars, or NULL */
} CallEntry;

/* Where features go. None of these functions fails or runs code of the program's. */
typedef struct FeatureSink {
    void *context;
    /* The number of a feature of the function at hand, defined on first sight. name: UTF-8, such as "items.len". */
    int32_t (*number)(void *context, const char *name);
    /* The number of a dynamic type, defined on first sight. */
    int32_t (*type_number)(void *context, PyTypeObject *type);
    void (*write)(void *context, int32_t number, double value);
} FeatureSink;

/* Read all features into the sink. *program is NULL at first. A pending exception stays as it is. */
void features_read(FeatureProgram **program, const CallEntry *entry, const FeatureSink *sink);
/* Free a program; NULL is allowed. */
void features_free(FeatureProgram *program);

#endif
