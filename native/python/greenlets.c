#include "greenlets.h"

#include <stdlib.h>

#include "stamps.h"

enum { TYPE = 0, GET_CURRENT = 4, CHAINS = 256 }; /* places in greenlet's table of C functions, which only ever grows */

typedef struct GreenletStack {
    const void *greenlet;
    int64_t serial;
    OpenFrame *open;
    uint32_t height, capacity;
    struct GreenletStack *next;
} GreenletStack;

/* The stacks of a thread that are switched out, by greenlet. A stack without open frames is not kept. */
typedef struct GreenletStacks {
    const void *current;
    int64_t serial, last_serial;
    GreenletStack *switched_out[CHAINS];
} GreenletStacks;

int greenlets_in_use;
static PyObject *(*get_current)(void);
static PyTypeObject *greenlet_type;
static PyObject *greenlet_module;

static GreenletStack **chain_of(GreenletStacks *stacks, const void *greenlet) {
    return &stacks->switched_out[((uintptr_t)greenlet >> 4) % CHAINS];
}

static void switch_out(Thread *thread, GreenletStacks *stacks) {
    GreenletStack *left = thread->height ? malloc(sizeof *left) : NULL;
    if (left) {
        GreenletStack **first = chain_of(stacks, stacks->current);
        *left = (GreenletStack){stacks->current, stacks->serial, thread->open, thread->height, thread->capacity, *first};
        *first = left;
    } else {
        free(thread->open);
    }
    thread->open = NULL;
    thread->height = thread->capacity = 0;
}

static void switch_in(Thread *thread, GreenletStacks *stacks, const void *greenlet) {
    stacks->current = greenlet;
    stacks->serial = ++stacks->last_serial;
    for (GreenletStack **at = chain_of(stacks, greenlet); *at; at = &(*at)->next) {
        if ((*at)->greenlet != greenlet) continue;
        GreenletStack *stack = *at;
        *at = stack->next;
        stacks->serial = stack->serial;
        thread->open = stack->open;
        thread->height = stack->height;
        thread->capacity = stack->capacity;
        free(stack);
        return;
    }
}

/* The thread's first greenlet, whose frames are open when greenlet is first met. Parents are asked for by the type's
 * own descriptor, because a subclass may define another `parent`. */
static const void *first_greenlet(PyObject *greenlet) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the program may be handling an exception */
    PyObject *getter = PyDict_GetItemString(greenlet_type->tp_dict, "parent");
    descrgetfunc get = getter ? Py_TYPE(getter)->tp_descr_get : NULL;
    for (PyObject *parent; get && (parent = get(getter, greenlet, (PyObject *)Py_TYPE(greenlet))); greenlet = parent) {
        Py_DECREF(parent); /* its child holds a reference */
        if (parent == Py_None) break;
    }
    PyErr_Restore(type, value, trace);
    return greenlet;
}

/* greenlet's trace function: it tells of a switch when it happens, not only at the next call. Each thread has one, so
 * that it is each thread itself that takes ours away once the recording has ended. */
static PyObject *on_switch(PyObject *self, PyObject *const *arguments, Py_ssize_t size) {
    (void)self, (void)arguments, (void)size;
    if (recording.active && current_thread) greenlets_follow(current_thread);
    if (!greenlets_in_use) Py_XDECREF(PyObject_CallMethod(greenlet_module, "settrace", "O", Py_None));
    PyErr_Clear();
    Py_RETURN_NONE;
}

static void set_trace(void) {
    static PyMethodDef method = {"switched", (PyCFunction)(void (*)(void))on_switch, METH_FASTCALL, NULL};
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the program may be handling an exception */
    PyObject *theirs = PyObject_CallMethod(greenlet_module, "gettrace", NULL), *ours = PyCFunction_New(&method, NULL);
    PyObject *done = theirs == Py_None && ours ? PyObject_CallMethod(greenlet_module, "settrace", "O", ours) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(ours);
    Py_XDECREF(theirs);
    PyErr_Restore(type, value, trace);
}

void greenlets_follow(Thread *thread) {
    PyObject *greenlet = get_current();
    if (!greenlet) {
        PyErr_Clear();
        return;
    }
    Py_DECREF(greenlet); /* it runs, so it stays alive */
    GreenletStacks *stacks = thread->greenlets;
    if (!stacks) {
        stacks = thread->greenlets = calloc(1, sizeof *stacks);
        if (stacks) stacks->current = first_greenlet(greenlet);
        if (stacks) set_trace();
    }
    if (!stacks || stacks->current == greenlet) return;
    int64_t stamp = thread_stamp(thread, clock_ns(&recording.clock));
    switch_out(thread, stacks);
    switch_in(thread, stacks, greenlet);
    thread_write(thread, stamp, stacks->serial, 0, -1, -1, EVENT_SWITCH);
}


void greenlets_look(void) {
    PyObject *modules = PyImport_GetModuleDict(), *module = PyDict_GetItemString(modules, "greenlet._greenlet");
    if (!module) return;
    PyObject *capsule = PyObject_GetAttrString(module, "_C_API");
    void **functions = capsule && PyCapsule_CheckExact(capsule) ? PyCapsule_GetPointer(capsule, "greenlet._C_API") : NULL;
    Py_XDECREF(capsule);
    PyErr_Clear();
    if (!functions) return;
    greenlet_type = functions[TYPE];
    get_current = (PyObject * (*)(void)) functions[GET_CURRENT];
    if (!greenlet_module) greenlet_module = Py_NewRef(module);
    greenlets_in_use = 1;
}

void greenlets_stop(void) { greenlets_in_use = 0; }
