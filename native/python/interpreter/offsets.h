/* Where the interpreter keeps the frames of its threads: offsets into its own structures, which are different in each
 * version. A recorder that reads the memory of a running program needs them. */
#ifndef PERFLAW_PYTHON_OFFSETS_H
#define PERFLAW_PYTHON_OFFSETS_H

#include "frames.h"

/* A new dict of offsets in bytes; NULL with an exception if there is no memory. */
PyObject *offsets_dict(void);

#endif
