#include "counters.h"

#include "tracer.h"

#include <string.h>

#define OF_THREAD static __thread __attribute__((tls_model("initial-exec"))) int64_t
OF_THREAD bytes;
OF_THREAD blocks;
OF_THREAD lock_ns;

int64_t counters_bytes(void) { return bytes; }
int64_t counters_blocks(void) { return blocks; }
int64_t counters_lock_wait(void) { return lock_ns; }

/* ---- allocations: around the allocators that were there, which may be somebody's already (tracemalloc) ---- */

static PyMemAllocatorEx before[2];

static void count(size_t size) {
    bytes += (int64_t)size;
    blocks++;
}

static void *allocate(void *context, size_t size) {
    const PyMemAllocatorEx *real = context;
    count(size);
    return real->malloc(real->ctx, size);
}

static void *allocate_zeroed(void *context, size_t items, size_t size) {
    const PyMemAllocatorEx *real = context;
    count(items * size);
    return real->calloc(real->ctx, items, size);
}

static void *reallocate(void *context, void *block, size_t size) {
    const PyMemAllocatorEx *real = context;
    count(size);
    return real->realloc(real->ctx, block, size);
}

static void release(void *context, void *block) {
    const PyMemAllocatorEx *real = context;
    real->free(real->ctx, block);
}

int counters_start_allocations(void) {
    static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
    for (int at = 0; at < 2 && !before[at].malloc; at++) {
        PyMem_GetAllocator(domains[at], &before[at]);
        PyMemAllocatorEx ours = {&before[at], allocate, allocate_zeroed, reallocate, release};
        PyMem_SetAllocator(domains[at], &ours);
    }
    return 1;
}

/* ---- locks: the methods' table entries point to us, and we to what they pointed to ---- */

enum { WAITED_NS = 2000, METHODS = 8 };
static struct Method {
    PyMethodDef *entry;
    PyCFunctionWithKeywords real;
} methods[METHODS];

#define ACQUIRE(at) static PyObject *acquire_##at(PyObject *lock, PyObject *arguments, PyObject *names) { \
    int64_t begun = clock_ns(&recorder.clock); \
    PyObject *result = methods[at].real(lock, arguments, names); \
    int64_t passed = clock_ns(&recorder.clock) - begun; \
    if (passed > WAITED_NS) lock_ns += passed; \
    return result; }
ACQUIRE(0) ACQUIRE(1) ACQUIRE(2) ACQUIRE(3) ACQUIRE(4) ACQUIRE(5) ACQUIRE(6) ACQUIRE(7)
static const PyCFunctionWithKeywords ours[METHODS] = {acquire_0, acquire_1, acquire_2, acquire_3,
                                                      acquire_4, acquire_5, acquire_6, acquire_7};

/* Before 3.13 __enter__ and acquire share a signature; later ones without keywords are called the same way. */
static int watch(PyTypeObject *type, const char *name, int at) {
    PyObject *found = type->tp_dict ? PyDict_GetItemString(type->tp_dict, name) : NULL;
    if (!found || !Py_IS_TYPE(found, &PyMethodDescr_Type)) return 0;
    PyMethodDef *entry = ((PyMethodDescrObject *)found)->d_method;
    if ((entry->ml_flags & ~METH_COEXIST) != (METH_VARARGS | METH_KEYWORDS)) return 0;
    for (int other = 0; other < at; other++)
        if (methods[other].entry == entry) return 0;
    methods[at] = (struct Method){entry, (PyCFunctionWithKeywords)(void (*)(void))entry->ml_meth};
    entry->ml_meth = (PyCFunction)(void (*)(void))ours[at];
    return 1;
}

int counters_start_locks(void) {
    static const char *const types[] = {"LockType", "RLock"}, *const names[] = {"acquire", "acquire_lock", "__enter__"};
    PyObject *module = PyImport_ImportModule("_thread");
    int watched = 0;
    for (int type = 0; module && type < 2; type++) {
        PyObject *found = PyObject_GetAttrString(module, types[type]);
        for (int name = 0; found && PyType_Check(found) && name < 3; name++)
            watched += watch((PyTypeObject *)found, names[name], watched);
        Py_XDECREF(found);
    }
    Py_XDECREF(module);
    PyErr_Clear();
    return watched > 0;
}
