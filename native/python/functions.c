#include "functions.h"

#include <sched.h>
#include <stdlib.h>

#include "python/counts/branches.h"
#include "budget.h"
#include "definitions.h"
#include "greenlets.h"
#include "naming.h"
#include "numbers.h"
#include "process.h"
#include "python/interpreter/superinstructions.h"
#include "python/interpreter/watching.h"
#include "stamps.h"

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

enum { SETTLED_AT_ONCE = 256 }; /* takes a millisecond */

static Function *all, *settled_next;
Py_ssize_t function_place = -1;
int function_is_direct;

static void free_function(void *held) {
    Function *function = held;
    if (!function) return;
    if (current_thread && current_thread->watched == function) current_thread->watched = NULL;
    if (settled_next == function) settled_next = function->next;
    features_free(function->program);
    branches_forget_function(function);
    if (function->place) *function->place = function->next;
    if (function->next) function->next->place = function->place;
    free(function->sampler);
    free(function->name);
    free(function);
}

/* Remember a function that is kept with its code object from here on. */
static void add_to_all(Function *function) {
    function->next = all;
    function->place = &all;
    if (all) all->place = &function->next;
    all = function;
}

int functions_start(void) {
    if (function_place < 0) function_place = PyUnstable_Eval_RequestCodeExtraIndex(free_function);
    return function_place >= 0;
}

void functions_forget(void) {
    for (Function *function = all; function; function = function->next) {
        if (function->sampler) *function->sampler = (Sampler){0}; /* open invocations may still hold it */
        function->countdown = 0;
        function->watched = 0;
        if (function->name) naming_set_mode(function);
        else function->mode = NEVER;
    }
}

void functions_restore_lines(void) {
#if PY_VERSION_HEX < 0x030C0000
    for (Function *function = all; function; function = function->next)
        if (function->lines && function->lines->points) points_restore(function->code, function->lines->points);
#endif
}

void functions_stop(void) {
    for (Function *function = all; function; function = function->next) unwatch(function);
    functions_restore_lines();
}

void functions_settle(void) {
#if HAS_SUPERINSTRUCTIONS
    for (settled_next = all; settled_next && !recording.active;) {
        settled_next = monitoring_settle(settled_next, SETTLED_AT_ONCE);
        Py_BEGIN_ALLOW_THREADS
        sched_yield();
        Py_END_ALLOW_THREADS
    }
#endif
}

#if PY_VERSION_HEX >= 0x030C0000
int functions_move(int (*move)(void)) {
    for (Function *function = all; function; function = function->next) {
        int events = function->watched;
        unwatch(function);
        function->watched = events;
    }
    int moved = move();
    for (Function *function = all; moved && function; function = function->next) watch_again(function);
    return moved;
}
#endif

/* ---- lookups ---- */

/* Code without a file of its own belongs to whoever runs it. */
static enum Origin origin_of_caller(const Frame *frame) {
    Frame *back = frame_caller(frame);
    const Function *caller = back ? function_of(back) : NULL;
    return caller && caller->is_own ? OWN : LIBRARY;
}

static void classify(Function *function, const Frame *frame) {
    enum Origin origin = naming_set_name(function, frame);
    if (!function->name) return; /* there is no memory: the function is not recorded */
    if (origin == UNKNOWN_ORIGIN) origin = origin_of_caller(frame);
    function->origin = origin;
    naming_set_mode(function);
}

static void leave_points(void) {
#if PY_VERSION_HEX < 0x030C0000
    points_stop();
#endif
}

static Function *create(Frame *frame) {
    Function *function = calloc(1, sizeof *function);
    if (!function) return NULL;
    int64_t stamp = overhead_begin();
    function->code = frame_code(frame);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the program may be handling an exception */
    classify(function, frame);
    if (!greenlets_in_use) greenlets_look();
    if (greenlets_in_use) leave_points();
    if (!recording.settings.fake_clock) waits_look();
    int error = PyUnstable_Code_SetExtra((PyObject *)function->code, function_place, function);
    PyErr_Restore(type, value, trace);
    overhead_end(stamp);
    if (!error) {
        add_to_all(function);
        return function;
    }
    free_function(function);
    return NULL;
}

static Function *known_function(PyCodeObject *code) {
    void *known = NULL;
    PyUnstable_Code_GetExtra((PyObject *)code, function_place, &known);
    return known;
}

Function *function_find(Frame *frame) {
    Function *known = known_function(frame_code(frame));
    return known ? known : create(frame);
}

Function *function_of_code(PyCodeObject *code) {
    Function *known = known_function(code), *function = known ? known : calloc(1, sizeof *function);
    if (!function || known) return function;
    function->code = code;
    if (!PyUnstable_Code_SetExtra((PyObject *)code, function_place, function)) {
        add_to_all(function);
        /* The interpreter promises nothing about the layout of co_extra: it is read directly only if it proves to be
         * as known. */
        const Extra *extra = code->co_extra;
        function_is_direct = extra->size > function_place && extra->items[function_place] == function;
        return function;
    }
    free(function);
    return NULL;
}

/* ---- definition ---- */

int32_t function_define(Function *function) {
    if (function->process != recording.process) {
        int is_new = 0;
        int64_t stamp = overhead_begin();
        function->number = function->name ? number_of_component(function, &is_new) : 0;
        function->process = recording.process;
        budget_forget(function);
        features_free(function->program); /* it holds numbers of features of the process before */
        function->program = NULL;
        if (is_new) define_component(function, function->number);
        if (function->number) branches_of_function(function);
        if (function->number) lines_of_function(function);
        overhead_end(stamp);
    }
    return function->number;
}

Lines *function_find_lines(PyCodeObject *code) {
    Function *function = lines_wanted && recording.active ? known_function(code) : NULL;
    if (!function || !function_counts_inside(function)) return NULL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the program may be handling an exception */
    int defined = thread_get() && function_define(function); /* a forked child begins its own recording here */
    PyErr_Restore(type, value, trace);
    return defined && function->lines && function->lines->process == lines_process ? function->lines : NULL;
}
