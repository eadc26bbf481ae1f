/* Programs that the target starts: which are Python, and what those get (children.c says why). All need the GIL. */
#ifndef PERFLAW_PYTHON_CHILDREN_H
#define PERFLAW_PYTHON_CHILDREN_H

#include "tracer.h"

/* ---- children_python.c ---- */
/* The path of a program as bytes, a new reference; NULL if it is none, or an object whose __fspath__ would have to run:
 * the real function runs it, once. */
PyObject *child_path(PyObject *path);
/* Whether the program is Python and started with words that let us in; words may be NULL. */
int child_is_python(PyObject *path, PyObject *words);
/* The same of the first that there is of several places where a program may be. */
int child_any_is_python(PyObject *paths, PyObject *words);

/* ---- children_environment.c ---- */
enum Shape { SEQUENCE_OR_NONE, MAPPING, MAPPING_OR_NONE };
enum { SPAWNED = PY_VERSION_HEX < 0x030D0000 ? MAPPING : MAPPING_OR_NONE }; /* what posix_spawn takes */

/* A dict of bytes: the environment given (None: the process's own) and ours. NULL: leave it as it is. */
PyObject *child_environment(PyObject *given, enum Shape shape);
/* The same as a list of NAME=VALUE; takes the reference, which may be NULL. */
PyObject *child_list(PyObject *all);

#endif
