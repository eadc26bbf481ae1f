#include "sizes.h"

#include <math.h>
#include <stdint.h>

#include "layout.h"

enum { MAX_SUMMANDS = 64 };

/* The beginnings of layouts that no header tells; they are the same in every version that this is compiled for. */
typedef struct RangeHead {
    PyObject_HEAD
    PyObject *start, *stop, *step, *length;
} RangeHead;

typedef struct ArrayHead {
    PyObject_VAR_HEAD
    char *items;
    Py_ssize_t allocated;
    const struct {
        char code;
        int item_size;
    } *element;
} ArrayHead;

typedef struct ElementHead {
    PyObject_HEAD
    PyObject *scalar_type;
    char kind, type, order, flags;
    int number;
    union {
        struct {
            int32_t item_size, alignment;
        } numpy1;
        struct {
            uint64_t flags;
            Py_ssize_t item_size;
        } numpy2;
    };
} ElementHead;

typedef struct TensorHead {
    PyObject_HEAD
    char *data;
    int dimensions;
    Py_ssize_t *extents, *strides;
    PyObject *base;
    ElementHead *element;
} TensorHead;

int number_value(Kind kind, PyObject *number, double *value) {
    if (kind == INTEGER) return integer_value(number, value);
    *value = kind == TRUTH ? number == Py_True : PyFloat_AS_DOUBLE(number);
    return isfinite(*value);
}

static Py_ssize_t length_of_text(PyObject *text) {
#if PY_VERSION_HEX < 0x030c0000
    if (!PyUnicode_IS_READY(text)) return -1; /* it was made by a deprecated interface, and its length is not known yet */
#endif
    return PyUnicode_GET_LENGTH(text);
}

static Py_ssize_t length_of_range(PyObject *range) {
    PyObject *length = ((RangeHead *)range)->length;
    double value;
    if (!length || !PyLong_CheckExact(length) || !integer_value(length, &value)) return -1;
    return value < 0x1p63 ? (Py_ssize_t)value : -1;
}

/* The buffer of a memoryview; NULL once the view, or what it is a view of, was released. */
static const Py_buffer *view_of(PyObject *memory) {
    PyMemoryViewObject *held = (PyMemoryViewObject *)memory;
    if (held->flags & _Py_MEMORYVIEW_RELEASED || !held->mbuf) return NULL;
    return held->mbuf->flags & _Py_MANAGED_BUFFER_RELEASED ? NULL : &held->view;
}

static Py_ssize_t length_of_memory(PyObject *memory) {
    const Py_buffer *view = view_of(memory);
    return view && view->ndim > 0 && view->shape ? view->shape[0] : -1;
}

Py_ssize_t length_of(Kind kind, PyObject *value) {
    switch (kind) {
    case SEQUENCE:
    case SIZED:
    case ARRAY: return Py_SIZE(value);
    case TEXT: return length_of_text(value);
    case MAPPING: return ((PyDictObject *)value)->ma_used;
    case SET: return ((PySetObject *)value)->used;
    case RANGE: return length_of_range(value);
    case MEMORY: return length_of_memory(value);
    default: return -1;
    }
}

int sum_of(PyObject *sequence, double *sum) {
    Py_ssize_t length = Py_SIZE(sequence);
    if (length > MAX_SUMMANDS) return 0;
    PyObject **items = PySequence_Fast_ITEMS(sequence);
    *sum = 0;
    for (Py_ssize_t at = 0; at < length; at++) {
        double value;
        if (!items[at]) return 0;
        int is_integer = PyLong_CheckExact(items[at]);
        if (!is_integer && !PyFloat_CheckExact(items[at])) return 0;
        if (!number_value(is_integer ? INTEGER : FLOATING, items[at], &value)) return 0;
        *sum += value;
    }
    return isfinite(*sum);
}

const Py_ssize_t *extents_of(PyObject *tensor, int *dimensions) {
    TensorHead *head = (TensorHead *)tensor;
    *dimensions = head->dimensions;
    return head->dimensions < 0 || head->dimensions > 64 || (head->dimensions && !head->extents) ? NULL : head->extents;
}

/* NumPy 1 has the alignment, which is never 0, where NumPy 2 has the upper half of its flags, which is always 0. */
static Py_ssize_t size_of_element(const ElementHead *element) {
    if (!element) return -1;
    return element->numpy1.alignment ? element->numpy1.item_size : element->numpy2.item_size;
}

static Py_ssize_t bytes_of_tensor(PyObject *tensor) {
    int dimensions;
    const Py_ssize_t *extents = extents_of(tensor, &dimensions);
    Py_ssize_t bytes = size_of_element(((TensorHead *)tensor)->element);
    if (bytes < 0 || (dimensions && !extents)) return -1;
    for (int at = 0; at < dimensions; at++)
        if (__builtin_mul_overflow(bytes, extents[at], &bytes) || bytes < 0) return -1;
    return bytes;
}

Py_ssize_t bytes_of(Kind kind, PyObject *value) {
    const Py_buffer *view = kind == MEMORY ? view_of(value) : NULL;
    if (kind == MEMORY) return view ? view->len : -1;
    if (kind == TENSOR) return bytes_of_tensor(value);
    if (kind != ARRAY || !((ArrayHead *)value)->element) return -1;
    return Py_SIZE(value) * ((ArrayHead *)value)->element->item_size;
}
