#include "collections.h"

#include "counters.h"
#include "python/definitions.h"
#include "python/greenlets.h"
#include "python/numbers.h"
#include "python/stamps.h"

#include <string.h>
#include <time.h>

#include <internal/pycore_interp.h> /* needs the headers of recording.h before it */

static PyObject *program_list;          /* gc.callbacks; NULL while the interpreter has it itself */
static const Thread *collecting_thread; /* the thread whose collection has a record of its begin */
static int32_t number;                  /* of the pseudo-callee in the definitions of `process` */
static uint32_t process;
static int64_t begun_ns;

/* Collections of the oldest generation that the interpreter began by itself. How many there are and what they cost
 * follows from the objects that survive, which is why they are counted apart. */
static struct {
    int64_t middle;           /* collections of the generations above the youngest */
    int64_t promoted;         /* objects that reached the oldest generation */
    int64_t full, visited;    /* full collections, and the objects in the oldest generation when they began */
    int64_t wall_ns, cpu_ns;  /* their time */
    int64_t old_before, cpu_begun;
    int is_full;
} tally;

static int64_t cpu_of_thread_ns(void) {
    struct timespec now;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) ? 0 : (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long generation_of(PyObject *about) {
    PyObject *item = PyDict_CheckExact(about) ? PyDict_GetItemString(about, "generation") : NULL;
    return item && PyLong_CheckExact(item) ? PyLong_AsLong(item) : 0;
}

static void tally_start(long generation) {
    const struct _gc_runtime_state *gc = &PyInterpreterState_Get()->gc;
    const struct gc_generation *oldest = &gc->generations[NUM_GENERATIONS - 1];
    tally.old_before = gc->long_lived_total + gc->long_lived_pending;
    /* The program's own gc.collect() need not meet the interpreter's two conditions. */
    tally.is_full = generation == NUM_GENERATIONS - 1 && oldest->count > oldest->threshold &&
                    gc->long_lived_pending >= gc->long_lived_total / 4;
    if (tally.is_full) tally.cpu_begun = cpu_of_thread_ns();
}

static void tally_stop(long generation, int64_t wall_ns) {
    const struct _gc_runtime_state *gc = &PyInterpreterState_Get()->gc;
    int64_t old = gc->long_lived_total + gc->long_lived_pending;
    if (!generation || (generation == NUM_GENERATIONS - 1 && !tally.is_full)) return;
    tally.middle++;
    if (old > tally.old_before) tally.promoted += old - tally.old_before;
    if (!tally.is_full) return;
    tally.full++;
    tally.visited += tally.old_before;
    tally.wall_ns += wall_ns;
    tally.cpu_ns += cpu_of_thread_ns() - tally.cpu_begun;
    tally.is_full = 0;
}

void collections_forget(void) {
    memset(&tally, 0, sizeof tally);
    tally.promoted = PyInterpreterState_Get()->gc.long_lived_total + PyInterpreterState_Get()->gc.long_lived_pending;
}

/* Blocks of memory that live; 0 if the interpreter does not say. */
static int64_t living_blocks(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* the program may end while an exception is on its way */
    PyObject *count = PySys_GetObject("getallocatedblocks"), *blocks = count ? PyObject_CallNoArgs(count) : NULL;
    int64_t living = blocks && PyLong_CheckExact(blocks) ? PyLong_AsLongLong(blocks) : 0;
    Py_XDECREF(blocks);
    PyErr_Restore(type, value, traceback);
    return living;
}

void collections_define(void) {
    if (!program_list) return;
    int64_t blocks = living_blocks();
    Text line = definition_begin("collections");
    definition_add_number(&line, tally.middle);
    definition_add_number(&line, tally.promoted);
    definition_add_number(&line, tally.full);
    definition_add_number(&line, tally.visited);
    definition_add_number(&line, tally.wall_ns);
    definition_add_number(&line, tally.cpu_ns);
    definition_add_number(&line, blocks);
    definition_write(&line);
}

static void define(void) {
    int is_new;
    int64_t stamp = overhead_begin();
    number = number_of_aside("(garbage collection)", &is_new);
    if (is_new) define_aside(number, "(garbage collection)");
    process = recording.process;
    overhead_end(stamp);
}

static void on_start(int64_t now) {
    Thread *thread = recording.active ? current_thread : NULL;
    if (!thread || !thread->height) return; /* no recorded function has set it off */
    if (process != recording.process) {
        define();
        now = clock_ns(&recording.clock);
    }
    if (!number) return;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = thread_stamp(thread, now);
    thread->watched = NULL; /* the call's own time is not known without the collection */
    thread_write(thread, stamp, (int64_t)(intptr_t)&collecting_thread, number, -1, -1, EVENT_ASIDE);
    thread->overhead_ns += recording.costs.call.enter_ns;
    collecting_thread = thread;
}

static void on_stop(int64_t now) {
    Thread *thread = recording.active ? current_thread : NULL;
    if (!thread || thread != collecting_thread) return;
    collecting_thread = NULL;
    if (greenlets_in_use) greenlets_follow(thread);
    int64_t stamp = thread_stamp(thread, now);
    thread_write(thread, stamp, (int64_t)(intptr_t)&collecting_thread, 1, -1, -1, EVENT_EXIT);
    thread->overhead_ns += recording.costs.call.exit_ns;
}

/* Call the program's callables as the interpreter does: the list may change meanwhile, and nobody catches an
 * exception. */
static void call_program_list(PyObject *const *arguments) {
    PyObject *list = program_list;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list); at++) {
        PyObject *callback = Py_NewRef(PyList_GET_ITEM(list, at));
        PyObject *result = PyObject_Vectorcall(callback, arguments, 2, NULL);
        if (!result) PyErr_WriteUnraisable(callback);
        Py_XDECREF(result);
        Py_DECREF(callback);
    }
}

/* The one callable in the hidden list. arguments: "start" or "stop", and a dict about the collection. */
static PyObject *on_collection(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names) {
    (void)self, (void)names;
    int is_known = PyVectorcall_NARGS(count) == 2 && PyUnicode_CheckExact(arguments[0]);
    int is_start = is_known && PyUnicode_GET_LENGTH(arguments[0]) == 5;
    int64_t now = clock_ns(&recording.clock);
    long generation = is_known ? generation_of(arguments[1]) : 0;
    if (is_start) on_start(begun_ns = now);
    if (is_start) tally_start(generation);
    if (is_known) call_program_list(arguments);
    if (!is_start) {
        now = clock_ns(&recording.clock);
        counters_add_collection(now - begun_ns);
        if (is_known) tally_stop(generation, now - begun_ns);
        on_stop(now);
    }
    Py_RETURN_NONE;
}

/* A list with our callable. The collector does not know either of them, so gc.get_objects() does not show them. The
 * callable is entered without the check for recursion, because the program may be at its limit. */
static PyObject *hidden_list(void) {
    static PyMethodDef method = {"collecting", (PyCFunction)(void (*)(void))on_collection, METH_FASTCALL, NULL};
    PyObject *callable = PyCFunction_New(&method, NULL), *list = callable ? PyList_New(1) : NULL;
    if (!list) {
        Py_XDECREF(callable);
        return NULL;
    }
    ((PyCFunctionObject *)callable)->vectorcall = on_collection;
    PyList_SET_ITEM(list, 0, callable);
    PyObject_GC_UnTrack(callable);
    PyObject_GC_UnTrack(list);
    return list;
}

void collections_start(void) {
    PyObject **place = &PyInterpreterState_Get()->gc.callbacks;
    PyObject *gc = PyImport_ImportModule("gc"), *visible = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    /* The interpreter promises nothing about this field: it is used only if it holds the very list that the program
     * sees. */
    if (!program_list && visible && visible == *place && PyList_CheckExact(visible)) {
        static PyObject *ours;
        if (!ours) ours = hidden_list();
        if (ours) program_list = *place, *place = ours;
    }
    Py_XDECREF(visible);
    Py_XDECREF(gc);
    PyErr_Clear();
    if (program_list) counters_allow_collections();
}

void collections_stop(void) {
    PyObject **place = &PyInterpreterState_Get()->gc.callbacks;
    if (!program_list) return;
    *place = program_list; /* the hidden list is not freed: its callable may be what calls us */
    program_list = NULL;
}
