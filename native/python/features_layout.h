/* What objects hold, read from their layouts: the attribute protocol would run the target's code.
 *
 * Ownership: everything returned is borrowed. Threads: the caller holds the GIL. Nothing here raises, makes objects or
 * compares keys by anything but the characters of exact strings.
 */
#ifndef PERFLAW_PYTHON_FEATURES_LAYOUT_H
#define PERFLAW_PYTHON_FEATURES_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* Takes one attribute or item; 0 ends the visit. */
typedef int (*Visit)(void *context, PyObject *name, PyObject *value);

/* Same address and same tag: the same, unchanged type; the address alone may be another's by now. 0: never the same.
 * In place of a reference, which would keep a class alive that the target expects to die. */
static inline unsigned type_tag(PyTypeObject *type) {
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE ? type->tp_version_tag : 1; /* a static type does not change or die */
}

/* Of two exact strings with hashes, such as keys of dictionaries have. */
int is_same_text(PyObject *one, PyObject *other);

/* The attribute `name` in the instance dictionary, made or not; NULL if unset. *hint: where it lay last time. */
PyObject *held_attribute(PyObject *object, PyObject *name, Py_ssize_t *hint);
void visit_held(PyObject *object, Visit visit, void *context);

/* Where instances of the type keep the slot `name`, 0 if it has none; what lies there, NULL if unset. */
Py_ssize_t slot_offset(PyTypeObject *type, PyObject *name);
PyObject *slot_value(PyObject *object, Py_ssize_t offset);
void visit_slots(PyObject *object, Visit visit, void *context);

/* The item of an exact dictionary all of whose keys are strings; NULL if absent, or of any other dictionary. */
PyObject *text_item(PyObject *dictionary, PyObject *key);
void visit_items(PyObject *dictionary, Visit visit, void *context);

/* 0 if it is beyond the range of floats. */
int integer_value(PyObject *integer, double *value);
/* Whether the function keeps this variable in a cell. */
int lies_in_cell(PyCodeObject *code, Py_ssize_t variable);

#endif
