/* Values, lengths, sums and bytes of exact values, by the kind of their type; some layouts are known from no header.
 *
 * Ownership: what is returned is borrowed. Threads: the caller holds the GIL. Cost: some loads; a sum is at most 64
 * additions. Nothing here raises or runs code of the program's. */
#ifndef PERFLAW_FEATURES_SIZES_H
#define PERFLAW_FEATURES_SIZES_H

#include "kinds.h"

/* The value of an exact int, bool or float. 0 if it is not finite or beyond the range of floats. */
int number_value(Kind kind, PyObject *number, double *value);
/* What len() would give; -1 if it would raise, or for a kind without length. */
Py_ssize_t length_of(Kind kind, PyObject *value);
/* The sum of an exact list or tuple of at most 64 exact ints and floats. 0 if it is none, or its sum is not finite. */
int sum_of(PyObject *sequence, double *sum);
/* Bytes of the elements of a memoryview, array or ndarray; -1 if that is not known. */
Py_ssize_t bytes_of(Kind kind, PyObject *value);
/* The extents of an ndarray; NULL if its layout is not the known one. */
const Py_ssize_t *extents_of(PyObject *tensor, int *dimensions);

#endif
