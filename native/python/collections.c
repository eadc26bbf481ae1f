/* Collections of garbage, which run inside whichever call sets them off: a pseudo-callee of it, and the metric gc.
 *
 * The interpreter tells the callables in a list of collections, and the program sees that list as gc.callbacks. So we
 * give the interpreter another list, which holds our callable alone and which nobody sees; ours tells those in the program's
 * list in turn, as the interpreter does. Whatever the program does to its list has the effect that it has without us.
 * Cost: the interpreter makes a dict for each telling, two for a collection; ours is a record each. */
#include "collections.h"

#include "event.h"

#include <internal/pycore_interp.h>
#include <string.h>

static PyObject *theirs; /* gc.callbacks; NULL while the interpreter has it itself */
static const Thread *within; /* the thread whose collection has a record of its begin */
static int32_t number;
static uint32_t process; /* whose definitions have the number */
static int64_t begun;

#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD int64_t spent;

int64_t collections_ns(void) { return spent; }

static void begins(int64_t now) {
    Thread *thread = recorder.active ? current_thread : NULL;
    if (!thread || !thread->height) return; /* no recorded function set it off */
    if (process != recorder.process) {
        number = function_define_aside("(garbage collection)");
        process = recorder.process;
        now = clock_ns(&recorder.clock);
    }
    if (!number) return;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = event_stamp(thread, now);
    event_write(thread, stamp, (int64_t)(intptr_t)&within, number, -1, -1, EVENT_ASIDE);
    thread->taken += recorder.costs.enter_ns;
    within = thread;
}

static void ends(int64_t now) {
    Thread *thread = recorder.active ? current_thread : NULL;
    if (!thread || thread != within) return;
    within = NULL;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = event_stamp(thread, now);
    event_write(thread, stamp, (int64_t)(intptr_t)&within, 1, -1, -1, EVENT_EXIT);
    thread->taken += recorder.costs.exit_ns;
}

/* As the interpreter does: the list may change meanwhile, and nobody takes an exception. */
static void tell_theirs(PyObject *const *arguments) {
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(theirs); at++) {
        PyObject *callback = Py_NewRef(PyList_GET_ITEM(theirs, at));
        PyObject *result = PyObject_Vectorcall(callback, arguments, 2, NULL);
        if (!result) PyErr_WriteUnraisable(callback);
        Py_XDECREF(result);
        Py_DECREF(callback);
    }
}

/* arguments: "start" or "stop", and a dict about the collection. */
static PyObject *collecting(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)names;
    int ours = PyVectorcall_NARGS(count) == 2 && PyUnicode_CheckExact(arguments[0]);
    int start = ours && PyUnicode_GET_LENGTH(arguments[0]) == 5;
    int64_t now = clock_ns(&recorder.clock);
    if (start) begins(begun = now);
    if (ours) tell_theirs(arguments);
    if (!start) {
        now = clock_ns(&recorder.clock);
        spent += now - begun;
        ends(now);
    }
    Py_RETURN_NONE;
}

/* A list of our callable, neither of which the collector knows: gc.get_objects() does not show them. The callable is entered
 * without the check for recursion, for the program may stand at its limit. */
static PyObject *hidden(void) {
    static PyMethodDef method = {"collecting", (PyCFunction)(void (*)(void))collecting, METH_FASTCALL, NULL};
    PyObject *callable = PyCFunction_New(&method, NULL), *list = callable ? PyList_New(1) : NULL;
    if (!list) {
        Py_XDECREF(callable);
        return NULL;
    }
    ((PyCFunctionObject *)callable)->vectorcall = collecting;
    PyList_SET_ITEM(list, 0, callable);
    PyObject_GC_UnTrack(callable);
    PyObject_GC_UnTrack(list);
    return list;
}

int collections_start(void) {
    PyObject **place = &PyInterpreterState_Get()->gc.callbacks;
    PyObject *gc = PyImport_ImportModule("gc"), *seen = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    /* That is no promise of the interpreter's: only where both are the same list do we know it. */
    if (!theirs && seen && seen == *place && PyList_CheckExact(seen)) {
        PyObject *ours = hidden();
        if (ours) theirs = *place, *place = ours;
    }
    Py_XDECREF(seen);
    Py_XDECREF(gc);
    PyErr_Clear();
    return theirs != NULL;
}

void collections_stop(void) {
    PyObject **place = &PyInterpreterState_Get()->gc.callbacks;
    if (!theirs) return;
    PyObject *ours = *place;
    *place = theirs;
    theirs = NULL;
    (void)ours; /* it may be what calls us */
}
