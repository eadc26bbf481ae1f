/* Slots: values at fixed offsets, named by the member descriptors that __slots__ left in the classes. */
#include "features_layout.h"

#include <structmember.h>

/* What `class` itself names in its __slots__: no such member lies outside of its instances, nor of its subclasses'. */
static Py_ssize_t offset_of(PyTypeObject *class, PyObject *entry) {
    if (!entry || Py_TYPE(entry) != &PyMemberDescr_Type) return 0;
    PyMemberDescrObject *member = (PyMemberDescrObject *)entry;
    /* A descriptor may have been put under another name, or into a class that it is not of. */
    if (PyDescr_TYPE(member) != class || member->d_member->type != T_OBJECT_EX) return 0;
    Py_ssize_t offset = member->d_member->offset, last = class->tp_basicsize - (Py_ssize_t)sizeof(PyObject *);
    return offset >= (Py_ssize_t)sizeof(PyObject) && offset <= last ? offset : 0;
}

/* The next class of the order of resolution that has __slots__; *at starts at 0. */
static PyTypeObject *next_with_slots(PyTypeObject *type, Py_ssize_t *at) {
    PyObject *order = type->tp_mro;
    if (!order || !PyTuple_CheckExact(order)) return NULL;
    while (*at < PyTuple_GET_SIZE(order)) {
        PyTypeObject *class = (PyTypeObject *)PyTuple_GET_ITEM(order, (*at)++);
        if (class->tp_flags & Py_TPFLAGS_HEAPTYPE && ((PyHeapTypeObject *)class)->ht_slots) return class;
    }
    return NULL;
}

Py_ssize_t slot_offset(PyTypeObject *type, PyObject *name) {
    Py_ssize_t at = 0, offset = 0;
    for (PyTypeObject *class; !offset && (class = next_with_slots(type, &at));)
        offset = offset_of(class, text_item(class->tp_dict, name));
    return offset;
}

PyObject *slot_value(PyObject *object, Py_ssize_t offset) { return *(PyObject **)((char *)object + offset); }

typedef struct SlotVisit {
    PyObject *object;
    PyTypeObject *class;
    Visit visit;
    void *context;
    int going;
} SlotVisit;

static int visit_slot(void *context, PyObject *name, PyObject *entry) {
    SlotVisit *here = context;
    Py_ssize_t offset = offset_of(here->class, entry);
    PyObject *value = offset ? slot_value(here->object, offset) : NULL;
    if (value) here->going = here->visit(here->context, name, value);
    return here->going;
}

void visit_slots(PyObject *object, Visit visit, void *context) {
    Py_ssize_t at = 0;
    SlotVisit here = {.object = object, .visit = visit, .context = context, .going = 1};
    while (here.going && (here.class = next_with_slots(Py_TYPE(object), &at)))
        visit_items(here.class->tp_dict, visit_slot, &here);
}
