/* Which kinds of exact types there is something to measure of, and the layouts of those that no header tells.
 *
 * A subclass is never of its base's kind: it may mean something else by its length. Nothing here raises or runs code of
 * the target's.
 */
#ifndef PERFLAW_PYTHON_FEATURES_KINDS_H
#define PERFLAW_PYTHON_FEATURES_KINDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

typedef enum Kind {
    OTHER,    /* nothing of it is measured but its type */
    OBJECT,   /* has attributes */
    INTEGER,  /* int */
    TRUTH,    /* bool */
    FLOATING, /* float */
    SEQUENCE, /* list, tuple */
    SIZED,    /* bytes, bytearray, deque: ob_size */
    TEXT,     /* str */
    MAPPING,  /* dict */
    SET,      /* set, frozenset */
    RANGE,    /* range */
    MEMORY,   /* memoryview */
    ARRAY,    /* array.array */
    TENSOR,   /* numpy.ndarray */
    PATH,     /* pathlib.PosixPath, PurePosixPath */
} Kind;

Kind kind_of(PyTypeObject *type);

static inline int is_number(Kind kind) { return kind == INTEGER || kind == TRUTH || kind == FLOATING; }

/* Value of an exact int, bool or float; 0 if it is not finite or beyond the range of floats. */
int number_value(Kind kind, PyObject *number, double *value);
/* What len() would say; -1 if it would raise, or of a kind without length. */
Py_ssize_t length_of(Kind kind, PyObject *value);
/* Sum of an exact list or tuple of at most 64 exact ints and floats; 0 if it is none or its sum is not finite. */
int sum_of(PyObject *sequence, double *sum);
/* Bytes of the elements of a memoryview, array or ndarray; -1 if that is not known. */
Py_ssize_t bytes_of(Kind kind, PyObject *value);
/* Extents of an ndarray; NULL if its layout is not the known one. */
const Py_ssize_t *extents_of(PyObject *tensor, int *dimensions);

#endif
