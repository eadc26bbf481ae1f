#include "counters.h"

#include <string.h>

#include "python/recording.h"

#define OF_THREAD static __thread __attribute__((tls_model("initial-exec"))) int64_t
OF_THREAD allocated_bytes;
OF_THREAD allocated_blocks;
OF_THREAD lock_wait_ns;
OF_THREAD collection_ns;

int64_t counters_allocated_bytes(void) { return allocated_bytes; }
int64_t counters_allocated_blocks(void) { return allocated_blocks; }
int64_t counters_lock_wait_ns(void) { return lock_wait_ns; }
int64_t counters_collection_ns(void) { return collection_ns; }

/* ---- collections of garbage ---- */

static int collections_are_told;

void counters_allow_collections(void) { collections_are_told = 1; }
int counters_start_collections(void) { return collections_are_told; }
void counters_add_collection(int64_t ns) { collection_ns += ns; }

/* ---- allocations: ours are put around the allocators that are there, which may be tracemalloc's already ---- */

static PyMemAllocatorEx originals[2];
static int are_counted[2];

static void count(size_t size) {
    allocated_bytes += (int64_t)size;
    allocated_blocks++;
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

static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};

int counters_start_allocations(void) {
    for (int at = 0; at < 2; at++) {
        if (are_counted[at]) continue;
        are_counted[at] = 1;
        PyMem_GetAllocator(domains[at], &originals[at]);
        PyMemAllocatorEx ours = {&originals[at], allocate, allocate_zeroed, reallocate, release};
        PyMem_SetAllocator(domains[at], &ours);
    }
    return 1;
}

void counters_stop_allocations(void) {
    for (int at = 0; at < 2; at++) {
        PyMemAllocatorEx present;
        PyMem_GetAllocator(domains[at], &present);
        if (present.ctx != &originals[at]) continue; /* others are around ours, which stay below them */
        PyMem_SetAllocator(domains[at], &originals[at]);
        are_counted[at] = 0;
    }
}

/* ---- locks: the entries of their methods point to ours, which call what the entries pointed to ---- */

enum { SHORTEST_WAIT_NS = 2000, METHODS = 8 };
static struct Method {
    PyMethodDef *entry;
    PyCFunctionWithKeywords real;
} methods[METHODS];

#define ACQUIRE(at) static PyObject *acquire_##at(PyObject *lock, PyObject *arguments, PyObject *names) { \
    int64_t begun = clock_ns(&recording.clock); \
    PyObject *result = methods[at].real(lock, arguments, names); \
    int64_t passed = clock_ns(&recording.clock) - begun; \
    if (passed > SHORTEST_WAIT_NS) lock_wait_ns += passed; \
    return result; }
ACQUIRE(0) ACQUIRE(1) ACQUIRE(2) ACQUIRE(3) ACQUIRE(4) ACQUIRE(5) ACQUIRE(6) ACQUIRE(7)
static const PyCFunctionWithKeywords ours[METHODS] = {acquire_0, acquire_1, acquire_2, acquire_3,
                                                      acquire_4, acquire_5, acquire_6, acquire_7};

/* Put ours in place of a method. Before 3.13 __enter__ and acquire share a signature; a method that takes no
 * keywords is left alone. */
static int replace(PyTypeObject *type, const char *name, int at) {
    PyObject *method = type->tp_dict ? PyDict_GetItemString(type->tp_dict, name) : NULL;
    if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type)) return 0;
    PyMethodDef *entry = ((PyMethodDescrObject *)method)->d_method;
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
    int replaced = 0;
    for (int type = 0; module && type < 2; type++) {
        PyObject *lock = PyObject_GetAttrString(module, types[type]);
        for (int name = 0; lock && PyType_Check(lock) && name < 3; name++)
            replaced += replace((PyTypeObject *)lock, names[name], replaced);
        Py_XDECREF(lock);
    }
    Py_XDECREF(module);
    PyErr_Clear();
    return replaced > 0;
}

void counters_stop_locks(void) {
    for (int at = 0; at < METHODS; at++) {
        PyCFunction own = (PyCFunction)(void (*)(void))ours[at];
        if (methods[at].entry && methods[at].entry->ml_meth == own)
            methods[at].entry->ml_meth = (PyCFunction)(void (*)(void))methods[at].real;
    }
}
