/* Sizes of the files that arguments name, by one stat each; nothing is opened.
 *
 * Ownership: none. Threads: the caller holds the GIL. Cost: about 2 us each. */
#ifndef PERFLAW_FEATURES_FILES_H
#define PERFLAW_FEATURES_FILES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Bytes of the regular file that a str, or a pathlib path, names; -1 if it names none. */
Py_ssize_t bytes_of_named_file(PyObject *text);
Py_ssize_t bytes_of_path(PyObject *path);

#endif
