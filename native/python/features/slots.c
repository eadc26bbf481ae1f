#include "slots.h"

#include <structmember.h>

/* The offset of a slot that `class` itself names in its __slots__, so that it lies inside its instances and those of
 * its subclasses. */
static Py_ssize_t offset_of(PyTypeObject *class, PyObject *entry) {
    if (!entry || Py_TYPE(entry) != &PyMemberDescr_Type) return 0;
    PyMemberDescrObject *member = (PyMemberDescrObject *)entry;
    /* A descriptor may have been put under another name, or into another class than its own. */
    if (PyDescr_TYPE(member) != class || member->d_member->type != T_OBJECT_EX) return 0;
    Py_ssize_t offset = member->d_member->offset, last = class->tp_basicsize - (Py_ssize_t)sizeof(PyObject *);
    return offset >= (Py_ssize_t)sizeof(PyObject) && offset <= last ? offset : 0;
}

/* The next class in the method resolution order that has __slots__; *at starts at 0. */
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
        offset = offset_of(class, string_item(class->tp_dict, name));
    return offset;
}

PyObject *slot_value(PyObject *object, Py_ssize_t offset) { return *(PyObject **)((char *)object + offset); }

/* The string "_fields", made once. */
static PyObject *fields_name(void) {
    static PyObject *name;
    if (!name) name = PyUnicode_InternFromString("_fields");
    return name;
}

typedef struct SlotVisit {
    PyObject *object;
    PyTypeObject *class;
    Visit visit;
    void *context;
    int goes_on;
} SlotVisit;

static int visit_slot(void *context, PyObject *name, PyObject *entry) {
    SlotVisit *here = context;
    Py_ssize_t offset = offset_of(here->class, entry);
    PyObject *value = offset ? slot_value(here->object, offset) : NULL;
    if (value) here->goes_on = here->visit(here->context, name, value);
    return here->goes_on;
}

void visit_slots(PyObject *object, Visit visit, void *context) {
    Py_ssize_t at = 0;
    SlotVisit here = {.object = object, .visit = visit, .context = context, .goes_on = 1};
    while (here.goes_on && (here.class = next_with_slots(Py_TYPE(object), &at)))
        visit_items(here.class->tp_dict, visit_slot, &here);
}

PyObject *field_names(PyTypeObject *type) {
    PyObject *order = type->tp_mro;
    if (!(type->tp_flags & Py_TPFLAGS_TUPLE_SUBCLASS) || !order || !PyTuple_CheckExact(order)) return NULL;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(order); at++) {
        PyTypeObject *class = (PyTypeObject *)PyTuple_GET_ITEM(order, at);
        PyObject *names = class->tp_flags & Py_TPFLAGS_HEAPTYPE ? string_item(class->tp_dict, fields_name()) : NULL;
        if (names && PyTuple_CheckExact(names)) return names;
    }
    return NULL;
}

Py_ssize_t field_index(PyTypeObject *type, PyObject *name) {
    PyObject *names = field_names(type);
    for (Py_ssize_t at = 0; names && at < PyTuple_GET_SIZE(names); at++)
        if (is_same_string(PyTuple_GET_ITEM(names, at), name)) return at;
    return -1;
}

PyObject *field_value(PyObject *named, Py_ssize_t index) {
    return index >= 0 && index < PyTuple_GET_SIZE(named) ? PyTuple_GET_ITEM(named, index) : NULL;
}

void visit_fields(PyObject *named, Visit visit, void *context) {
    PyObject *names = field_names(Py_TYPE(named));
    for (Py_ssize_t at = 0; names && at < PyTuple_GET_SIZE(names); at++) {
        PyObject *value = field_value(named, at);
        if (value && !visit(context, PyTuple_GET_ITEM(names, at), value)) return;
    }
}
