#include "waits.h"

#include <string.h>

#include "python/recording.h"

enum { SHORTEST_WAIT_NS = 2000, SLOTS = 64 };

_Static_assert(WAITS_KINDS <= MAX_WAITS, "a thread holds the sums of all kinds");

static __thread __attribute__((tls_model("initial-exec"))) int64_t waited_ns[WAITS_KINDS];

const char *waits_name(int kind) {
    static const char *const names[] = {"sleep", "lock", "io", "network", "child"};
    return names[kind];
}

int64_t waits_ns(int kind) { return waited_ns[kind]; }

/* ---- the entries of the methods point to ours, which call what the entries pointed to ---- */

/* Methods take two to five arguments, all of them pointers or of that size. On the machines that this runs on the
 * caller passes them in registers, so a function of five passes on whatever there are. */
typedef PyObject *(*Method)(void *, void *, void *, void *, void *);
static struct Slot {
    PyMethodDef *entry;
    Method real;
    int kind;
} slots[SLOTS];
static int slot_count;

static inline PyObject *call(int slot, void *a, void *b, void *c, void *d, void *e) {
    int64_t begun = clock_ns(&recording.clock);
    PyObject *result = slots[slot].real(a, b, c, d, e);
    int64_t passed = clock_ns(&recording.clock) - begun;
    if (passed > SHORTEST_WAIT_NS) waited_ns[slots[slot].kind] += passed;
    return result;
}

#define SLOT(at) static PyObject *call_##at(void *a, void *b, void *c, void *d, void *e) { return call(at, a, b, c, d, e); }
#define EIGHT(OF, n) OF(n##0) OF(n##1) OF(n##2) OF(n##3) OF(n##4) OF(n##5) OF(n##6) OF(n##7)
/* Numbers are octal: 00 to 077. */
#define EVERY(OF) EIGHT(OF, 0) EIGHT(OF, 01) EIGHT(OF, 02) EIGHT(OF, 03) EIGHT(OF, 04) EIGHT(OF, 05) EIGHT(OF, 06) EIGHT(OF, 07)
EVERY(SLOT)
#define NAME(at) call_##at,
static const Method ours[SLOTS] = {EVERY(NAME)};

static PyCFunction function_of_slot(int slot) { return (PyCFunction)(void (*)(void))ours[slot]; }

static void watch(PyMethodDef *entry, int kind) {
    int slot = 0;
    while (slot < slot_count && slots[slot].entry != entry) slot++;
    if (slot == SLOTS || !entry || !entry->ml_meth || entry->ml_meth == function_of_slot(slot)) return;
    slots[slot] = (struct Slot){entry, (Method)(void (*)(void))entry->ml_meth, kind};
    entry->ml_meth = function_of_slot(slot);
    if (slot == slot_count) slot_count++;
}

/* ---- which functions block ---- */

enum { MAX_NAMES = 12 };
static struct Place {
    const char *module, *type; /* the type whose methods are meant, or a function that makes its objects; NULL for functions of the module */
    int kind, is_watched;
    const char *names[MAX_NAMES];
} places[] = {
    {"time", NULL, WAITS_SLEEP, 0, {"sleep"}},
    {"_thread", "LockType", WAITS_LOCK, 0, {"acquire", "acquire_lock", "__enter__"}},
    {"_thread", "RLock", WAITS_LOCK, 0, {"acquire", "__enter__"}},
    {"_queue", "SimpleQueue", WAITS_LOCK, 0, {"get"}},
    {"_multiprocessing", "SemLock", WAITS_LOCK, 0, {"acquire", "__enter__"}},
    {"fcntl", NULL, WAITS_LOCK, 0, {"flock", "lockf"}},
    {"posix", NULL, WAITS_CHILD, 0,
     {"waitpid", "wait", "wait3", "wait4", "waitid", "system", "posix_spawn", "posix_spawnp"}},
    /* A parent stands still until its child has become another program (vfork). */
    {"_posixsubprocess", NULL, WAITS_CHILD, 0, {"fork_exec"}},
    {"posix", NULL, WAITS_IO, 0,
     {"read", "write", "readv", "writev", "pread", "pwrite", "fsync", "fdatasync", "sendfile", "open", "close"}},
    {"_io", "FileIO", WAITS_IO, 0, {"read", "readinto", "readall", "write", "close"}},
    {"select", NULL, WAITS_IO, 0, {"select"}},
    {"select", "epoll", WAITS_IO, 0, {"poll"}},
    {"select", "poll", WAITS_IO, 0, {"poll"}},
    {"_socket", "socket", WAITS_NETWORK, 0,
     {"recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "send", "sendall", "sendto", "sendmsg", "connect",
      "connect_ex", "_accept"}},
    {"_socket", NULL, WAITS_NETWORK, 0, {"getaddrinfo"}},
    {"_ssl", "_SSLSocket", WAITS_NETWORK, 0, {"read", "write", "do_handshake"}},
};

static PyMethodDef *entry_of(PyObject *function) {
    if (function && PyCFunction_Check(function)) return ((PyCFunctionObject *)function)->m_ml;
    return function && Py_IS_TYPE(function, &PyMethodDescr_Type) ? ((PyMethodDescrObject *)function)->d_method : NULL;
}

/* Methods by name of a type, borrowed; some types, as that of select.poll, have no name but a function that makes their
 * objects. The module keeps such a type alive. */
static PyObject *methods_of(PyObject *type) {
    if (!type || PyType_Check(type)) return type ? ((PyTypeObject *)type)->tp_dict : NULL;
    PyObject *object = PyCFunction_Check(type) ? PyObject_CallNoArgs(type) : NULL;
    PyObject *methods = object ? Py_TYPE(object)->tp_dict : NULL;
    PyErr_Clear();
    Py_XDECREF(object);
    return methods;
}

static void watch_place(struct Place *place, PyObject *module) {
    PyObject *members = PyModule_Check(module) ? PyModule_GetDict(module) : NULL; /* borrowed */
    if (members && place->type) members = methods_of(PyDict_GetItemString(members, place->type));
    if (!members) return;
    place->is_watched = 1;
    for (int at = 0; at < MAX_NAMES && place->names[at]; at++)
        watch(entry_of(PyDict_GetItemString(members, place->names[at])), place->kind);
}

void waits_look(void) {
    PyObject *modules = PyImport_GetModuleDict();
    for (size_t at = 0; at < sizeof places / sizeof *places; at++) {
        PyObject *module = places[at].is_watched ? NULL : PyDict_GetItemString(modules, places[at].module);
        if (module) watch_place(&places[at], module);
    }
}

void waits_stop(void) {
    for (int slot = 0; slot < slot_count; slot++) /* a slot keeps its method, because calls of it may not have ended */
        if (slots[slot].entry->ml_meth == function_of_slot(slot))
            slots[slot].entry->ml_meth = (PyCFunction)(void (*)(void))slots[slot].real;
    for (size_t at = 0; at < sizeof places / sizeof *places; at++) places[at].is_watched = 0;
}
