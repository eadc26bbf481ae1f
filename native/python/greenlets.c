#include "greenlets.h"

#include <stdlib.h>

#include "event.h"

enum { TYPE = 0, GET_CURRENT = 4, CHAINS = 256 }; /* places in greenlet's table of C functions, which only ever grows */

typedef struct Stack {
    const void *greenlet;
    int64_t serial;
    Frame **open;
    uint32_t height, room;
    struct Stack *next;
} Stack;

/* The stacks of a thread that are away, by greenlet. Those without an open frame are not kept. */
struct Stacks {
    const void *current;
    int64_t serial, last_serial;
    Stack *away[CHAINS];
};

int greenlets_in_use;
static PyObject *(*get_current)(void);
static PyTypeObject *greenlet_type;

static Stack **chain(struct Stacks *stacks, const void *greenlet) {
    return &stacks->away[((uintptr_t)greenlet >> 4) % CHAINS];
}

static void put_away(Thread *thread, struct Stacks *stacks) {
    Stack *left = thread->height ? malloc(sizeof *left) : NULL;
    if (left) {
        Stack **first = chain(stacks, stacks->current);
        *left = (Stack){stacks->current, stacks->serial, thread->open, thread->height, thread->room, *first};
        *first = left;
    } else {
        free(thread->open);
    }
    thread->open = NULL;
    thread->height = thread->room = 0;
}

static void take_back(Thread *thread, struct Stacks *stacks, const void *greenlet) {
    stacks->current = greenlet;
    stacks->serial = ++stacks->last_serial;
    for (Stack **at = chain(stacks, greenlet); *at; at = &(*at)->next) {
        if ((*at)->greenlet != greenlet) continue;
        Stack *found = *at;
        *at = found->next;
        stacks->serial = found->serial;
        thread->open = found->open;
        thread->height = found->height;
        thread->room = found->room;
        free(found);
        return;
    }
}

/* The thread's own first greenlet, whose frames are open when greenlets are first heard of. By the type's descriptor:
 * a subclass may have its own idea of a parent. */
static const void *first_of_thread(PyObject *greenlet) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the target may be unwinding */
    PyObject *getter = PyDict_GetItemString(greenlet_type->tp_dict, "parent");
    descrgetfunc get = getter ? Py_TYPE(getter)->tp_descr_get : NULL;
    for (PyObject *parent; get && (parent = get(getter, greenlet, (PyObject *)Py_TYPE(greenlet))); greenlet = parent) {
        Py_DECREF(parent); /* its child holds it */
        if (parent == Py_None) break;
    }
    PyErr_Restore(type, value, trace);
    return greenlet;
}

void greenlets_follow(Thread *thread) {
    PyObject *greenlet = get_current();
    if (!greenlet) {
        PyErr_Clear();
        return;
    }
    Py_DECREF(greenlet); /* it runs, so it lives */
    struct Stacks *stacks = thread->stacks;
    if (!stacks) {
        stacks = thread->stacks = calloc(1, sizeof *stacks);
        if (stacks) stacks->current = first_of_thread(greenlet);
    }
    if (!stacks || stacks->current == greenlet) return;
    int64_t stamp = event_stamp(thread, clock_ns(&recorder.clock));
    put_away(thread, stacks);
    take_back(thread, stacks, greenlet);
    event_write(thread, stamp, stacks->serial, 0, -1, -1, EVENT_SWITCH);
}

/* greenlet's own trace function tells a switch when it happens, not only at the next call. */
static PyObject *switched(PyObject *self, PyObject *const *arguments, Py_ssize_t size) {
    (void)self, (void)arguments, (void)size;
    if (recorder.active && current_thread) greenlets_follow(current_thread);
    Py_RETURN_NONE;
}

static void ask_to_be_told(PyObject *module) {
    static PyMethodDef method = {"switched", (PyCFunction)(void (*)(void))switched, METH_FASTCALL, NULL};
    PyObject *theirs = PyObject_CallMethod(module, "gettrace", NULL), *ours = PyCFunction_New(&method, NULL);
    PyObject *done = theirs == Py_None && ours ? PyObject_CallMethod(module, "settrace", "O", ours) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(ours);
    Py_XDECREF(theirs);
    PyErr_Clear();
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
    greenlets_in_use = 1;
    ask_to_be_told(module);
}
