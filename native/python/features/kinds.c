#include "kinds.h"

#include <string.h>

#include "slots.h"

static const struct {
    PyTypeObject *type;
    Kind kind;
} BUILT_IN[] = {
    {&PyUnicode_Type, TEXT}, {&PyLong_Type, INTEGER},   {&PyList_Type, SEQUENCE},   {&PyDict_Type, MAPPING},
    {&PyBool_Type, TRUTH},   {&PyFloat_Type, FLOATING}, {&PyTuple_Type, SEQUENCE},  {&PyRange_Type, RANGE},
    {&PySet_Type, SET},      {&PyFrozenSet_Type, SET},  {&PyBytes_Type, SIZED},     {&PyByteArray_Type, SIZED},
    {&PyMemoryView_Type, MEMORY}, {&PyODict_Type, MAPPING},
};

/* Types of C extensions, whose addresses are not known. A Python class may have such a name, but not the flags as
 * well. */
static const struct {
    const char *name;
    Py_ssize_t min_size;
    Kind kind;
} IN_EXTENSIONS[] = {
    {"collections.defaultdict", sizeof(PyDictObject), MAPPING},
    {"collections.deque", sizeof(PyVarObject), SIZED},
    {"array.array", 56, ARRAY},
    {"numpy.ndarray", 80, TENSOR},
};

static Kind kind_in_extension(PyTypeObject *type) {
    for (size_t at = 0; at < Py_ARRAY_LENGTH(IN_EXTENSIONS); at++)
        if (type->tp_basicsize >= IN_EXTENSIONS[at].min_size && !strcmp(type->tp_name, IN_EXTENSIONS[at].name))
            return IN_EXTENSIONS[at].kind;
    return OTHER;
}

/* Another class with the name of a path does no harm, because a path is read by slots that are looked up in its
 * class. */
static Kind kind_of_class(PyTypeObject *type) {
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_flags & Py_TPFLAGS_TYPE_SUBCLASS) return OTHER;
    if (!strcmp(type->tp_name, "PosixPath") || !strcmp(type->tp_name, "PurePosixPath")) return PATH;
    /* collections.Counter is a class of Python's. Its length is read from the dictionary that it is, so that a class of
     * the program's with this name does no harm either. */
    if (!strcmp(type->tp_name, "Counter") && type->tp_base == &PyDict_Type) return MAPPING;
    if (field_names(type)) return NAMED;
    return PyType_IsSubtype(type, &PyModule_Type) ? OTHER : OBJECT;
}

Kind kind_of(PyTypeObject *type) {
    for (size_t at = 0; at < Py_ARRAY_LENGTH(BUILT_IN); at++)
        if (type == BUILT_IN[at].type) return BUILT_IN[at].kind;
    int is_c_type = !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE;
    Kind kind = is_c_type ? kind_in_extension(type) : OTHER;
    return kind == OTHER ? kind_of_class(type) : kind;
}
