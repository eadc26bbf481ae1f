/* Slots: values at fixed offsets, named by the member descriptors that __slots__ left in the classes; and the fields of
 * named tuples, which their classes list in _fields.
 *
 * Ownership: everything returned is borrowed. Threads: the caller holds the GIL. Cost: a look-up in each class of
 * the type. Nothing here raises. */
#ifndef PERFLAW_FEATURES_SLOTS_H
#define PERFLAW_FEATURES_SLOTS_H

#include "layout.h"

/* Where instances of the type keep the slot `name`, 0 if it has none; what is there, NULL if it is unset. */
Py_ssize_t slot_offset(PyTypeObject *type, PyObject *name);
PyObject *slot_value(PyObject *object, Py_ssize_t offset);
void visit_slots(PyObject *object, Visit visit, void *context);

/* The names of the fields, a tuple; NULL if the type is no named tuple. */
PyObject *field_names(PyTypeObject *type);
/* Index of the field `name` of a named tuple, -1 if it has none; the field, NULL if this tuple is too short. */
Py_ssize_t field_index(PyTypeObject *type, PyObject *name);
PyObject *field_value(PyObject *named, Py_ssize_t index);
void visit_fields(PyObject *named, Visit visit, void *context);

#endif
