/* Whether a program that is started is Python, and one that loads what we put into its environment.
 *
 * Ownership: as each says. Threads: the caller holds the GIL. Cost: reading the first bytes of a file. */
#ifndef PERFLAW_PYTHON_CHILDREN_PYTHON_H
#define PERFLAW_PYTHON_CHILDREN_PYTHON_H

#include "python/recording.h"

/* The path of a program as bytes, a new reference. NULL if it is no path, or an object whose __fspath__ would have
 * to run: the real function runs that, once. */
PyObject *child_path(PyObject *path);
/* Whether the program is Python and is started with words that let us in; words may be NULL. */
int child_is_python(PyObject *path, PyObject *words);
/* The same for the first program that exists among several paths. */
int child_any_is_python(PyObject *paths, PyObject *words);

#endif
