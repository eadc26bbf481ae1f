#include "greenlets.h"

#include <stdlib.h>

#include "event.h"

enum { GET_CURRENT = 4, CHAINS = 256 }; /* place in greenlet's table of C functions, which only ever grows */

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
        if (stacks) stacks->current = greenlet;
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
    get_current = (PyObject * (*)(void)) functions[GET_CURRENT];
    greenlets_in_use = 1;
    ask_to_be_told(module);
}
