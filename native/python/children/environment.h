/* The environment of a Python program that is started: what the program gives it, and what we add.
 *
 * Ownership: as each says. Threads: the caller holds the GIL. Cost: a copy of the environment. */
#ifndef PERFLAW_PYTHON_CHILDREN_ENVIRONMENT_H
#define PERFLAW_PYTHON_CHILDREN_ENVIRONMENT_H

#include "python/recording.h"

/* What a function that starts programs takes for an environment. */
enum Shape { SEQUENCE_OR_NONE, MAPPING, MAPPING_OR_NONE };
static const enum Shape SPAWN_SHAPE = PY_VERSION_HEX < 0x030D0000 ? MAPPING : MAPPING_OR_NONE; /* what posix_spawn takes */

/* A new dict of bytes: the environment given (None: the process's own) with ours. NULL: leave it as it is. */
PyObject *child_environment(PyObject *given, enum Shape shape);
/* The same as a new list of NAME=VALUE. Takes the reference to the dict, which may be NULL. */
PyObject *child_list(PyObject *environment);

#endif
