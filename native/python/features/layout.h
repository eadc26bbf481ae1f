/* What objects hold, read from their layouts, because the attribute protocol would run the program's code.
 *
 * Ownership: everything returned is borrowed. Threads: the caller holds the GIL. Cost: 5 to 20 ns an attribute. Nothing
 * here raises, makes objects or compares keys by anything but the characters of exact strings.
 */
#ifndef PERFLAW_FEATURES_LAYOUT_H
#define PERFLAW_FEATURES_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Takes one attribute or item; 0 ends the visit. */
typedef int (*Visit)(void *context, PyObject *name, PyObject *value);

/* An unchanged type has the same address and the same tag; the address alone may by now be another type's. 0 is
 * never the same. A reference to the type would keep a class alive that the program expects to die. */
static inline unsigned type_tag(PyTypeObject *type) {
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE ? type->tp_version_tag : 1; /* a static type neither changes nor dies */
}

/* Whether two exact strings with hashes, such as keys of dictionaries, are equal. */
int is_same_string(PyObject *one, PyObject *other);

/* The attribute `name` in the instance dictionary, whether that is made yet or not; NULL if it is unset. *hint:
 * where it lay last. */
PyObject *instance_attribute(PyObject *object, PyObject *name, Py_ssize_t *hint);
void visit_instance(PyObject *object, Visit visit, void *context);

/* The item of an exact dictionary all of whose keys are strings; NULL if it is absent, and for any other dictionary. */
PyObject *string_item(PyObject *dictionary, PyObject *key);
void visit_items(PyObject *dictionary, Visit visit, void *context);

/* The value of an exact int. 0 if it is beyond the range of floats. */
int integer_value(PyObject *integer, double *value);
/* Whether the function keeps this variable in a cell. */
int is_cell_variable(PyCodeObject *code, Py_ssize_t variable);

#endif
