/* Slots: values at fixed offsets, named by the member descriptors that __slots__ left in the classes.
 *
 * Ownership: everything returned is borrowed. Threads: the caller holds the GIL. Cost: a look-up in each class that
 * has slots. Nothing here raises. */
#ifndef PERFLAW_FEATURES_SLOTS_H
#define PERFLAW_FEATURES_SLOTS_H

#include "layout.h"

/* Where instances of the type keep the slot `name`, 0 if it has none; what is there, NULL if it is unset. */
Py_ssize_t slot_offset(PyTypeObject *type, PyObject *name);
PyObject *slot_value(PyObject *object, Py_ssize_t offset);
void visit_slots(PyObject *object, Visit visit, void *context);

#endif
