/* Kinds of exact types of which something is measured.
 *
 * A subclass is never of its base's kind, because its length may mean something else. Ownership: none. Threads: the
 * caller holds the GIL. Cost: some comparisons. Nothing here raises or runs code of the program's.
 */
#ifndef PERFLAW_FEATURES_KINDS_H
#define PERFLAW_FEATURES_KINDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef enum Kind {
    OTHER,    /* only its type is measured */
    OBJECT,   /* has attributes */
    NAMED,    /* a named tuple: its fields are attributes */
    INTEGER,  /* int */
    TRUTH,    /* bool */
    FLOATING, /* float */
    SEQUENCE, /* list, tuple */
    SIZED,    /* bytes, bytearray, deque: ob_size is the length */
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

static inline int has_attributes(Kind kind) { return kind == OBJECT || kind == NAMED; }

static inline int is_number(Kind kind) { return kind == INTEGER || kind == TRUTH || kind == FLOATING; }

#endif
