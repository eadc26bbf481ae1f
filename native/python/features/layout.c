/* Instance dictionaries and integers, whose layouts differ between versions of the interpreter. */
#define Py_BUILD_CORE 1
#include "layout.h"

#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>

#ifdef Py_GIL_DISABLED
#error "dictionaries are read under the GIL"
#endif
#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030e0000
#error "the layouts are those of CPython 3.11 to 3.13"
#endif

/* The values that lie beside the object as long as nobody has asked for its __dict__; their names are with the type. */
static PyDictValues *inline_values(PyObject *object, PyDictKeysObject **names) {
    PyTypeObject *type = Py_TYPE(object);
    if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return NULL;
    *names = ((PyHeapTypeObject *)type)->ht_cached_keys;
    if (!*names) return NULL;
#if PY_VERSION_HEX >= 0x030d0000
    if (!(type->tp_flags & Py_TPFLAGS_INLINE_VALUES)) return NULL;
    PyDictValues *values = _PyObject_InlineValues(object);
    return values->valid ? values : NULL;
#elif PY_VERSION_HEX >= 0x030c0000
    PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
    return _PyDictOrValues_IsValues(either) ? _PyDictOrValues_GetValues(either) : NULL;
#else
    return *_PyObject_ValuesPointer(object);
#endif
}

/* Only if inline_values finds nothing: in 3.12 the same word holds either. */
static PyObject *instance_dictionary(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
#if PY_VERSION_HEX >= 0x030d0000
        return (PyObject *)_PyObject_GetManagedDict(object);
#elif PY_VERSION_HEX >= 0x030c0000
        PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
        return _PyDictOrValues_IsValues(either) ? NULL : _PyDictOrValues_GetDict(either);
#else
        return *_PyObject_ManagedDictPointer(object);
#endif
    }
    return type->tp_dictoffset > 0 ? *(PyObject **)((char *)object + type->tp_dictoffset) : NULL;
}

int is_same_string(PyObject *one, PyObject *other) {
    if (one == other) return 1; /* the usual way, because names are interned */
    if (!one) return 0;
    if (!PyUnicode_CheckExact(one) || !PyUnicode_CheckExact(other)) return 0;
    return ((PyASCIIObject *)one)->hash == ((PyASCIIObject *)other)->hash && !PyUnicode_Compare(one, other);
}

PyObject *instance_attribute(PyObject *object, PyObject *name, Py_ssize_t *hint) {
    PyDictKeysObject *names;
    PyDictValues *values = inline_values(object, &names);
    if (!values) return string_item(instance_dictionary(object), name);
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(names);
    Py_ssize_t at = *hint;
    if (at >= names->dk_nentries || entries[at].me_key != name)
        for (at = 0; at < names->dk_nentries && !is_same_string(entries[at].me_key, name);) at++;
    if (at >= names->dk_nentries) return NULL;
    *hint = at;
    return values->values[at];
}

static void visit_entries(PyDictKeysObject *keys, PyDictValues *values, Visit visit, void *context) {
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    for (Py_ssize_t at = 0; at < keys->dk_nentries; at++) {
        PyObject *value = values ? values->values[at] : entries[at].me_value;
        if (value && entries[at].me_key && !visit(context, entries[at].me_key, value)) return;
    }
}

void visit_instance(PyObject *object, Visit visit, void *context) {
    PyDictKeysObject *names;
    PyDictValues *values = inline_values(object, &names);
    if (values) visit_entries(names, values, visit, context);
    else visit_items(instance_dictionary(object), visit, context);
}

/* Other dictionaries may have keys whose __eq__ is the program's. */
static int has_string_keys(PyObject *dictionary) {
    return dictionary && PyDict_CheckExact(dictionary) && DK_IS_UNICODE(((PyDictObject *)dictionary)->ma_keys);
}

PyObject *string_item(PyObject *dictionary, PyObject *key) {
    if (!has_string_keys(dictionary) || !PyUnicode_CheckExact(key)) return NULL;
    Py_hash_t hash = ((PyASCIIObject *)key)->hash;
    if (hash == -1) hash = PyUnicode_Type.tp_hash(key);
    return _PyDict_GetItem_KnownHash(dictionary, key, hash);
}

void visit_items(PyObject *dictionary, Visit visit, void *context) {
    if (!has_string_keys(dictionary)) return;
    PyDictObject *items = (PyDictObject *)dictionary;
    visit_entries(items->ma_keys, items->ma_values, visit, context);
}

static Py_ssize_t digits_of(PyObject *integer, const digit **digits) {
#if PY_VERSION_HEX >= 0x030c0000
    _PyLongValue *value = &((PyLongObject *)integer)->long_value;
    *digits = value->ob_digit;
    return (Py_ssize_t)(value->lv_tag >> _PyLong_NON_SIZE_BITS);
#else
    *digits = ((PyLongObject *)integer)->ob_digit;
    return Py_ABS(Py_SIZE(integer));
#endif
}

/* The largest float is 53 ones and 971 zeros in binary, which is 4 + 30 + 19 ones at the top of digits of 30 bits. */
static int fits_float(const digit *digits, Py_ssize_t count) {
    _Static_assert(PyLong_SHIFT == 30, "digits of 30 bits");
    if (count != 35) return count < 35;
    if (digits[34] > 15) return 0;
    if (digits[34] < 15 || digits[33] < PyLong_MASK || digits[32] >> 11 < 0x7ffff) return 1;
    digit rest = digits[32] & 0x7ff;
    for (int at = 0; at < 32; at++) rest |= digits[at];
    return !rest;
}

int integer_value(PyObject *integer, double *value) {
    const digit *digits;
    Py_ssize_t count = digits_of(integer, &digits);
    if (!fits_float(digits, count)) return 0;
    *value = PyLong_AsDouble(integer); /* raises only beyond that range */
    return 1;
}

int is_cell_variable(PyCodeObject *code, Py_ssize_t variable) {
    return (PyBytes_AS_STRING(code->co_localspluskinds)[variable] & CO_FAST_CELL) != 0;
}
