/* Features of one invocation to records: who the reader of features.h reports to. */
#include "branches.h"
#include "event.h"

#include <string.h>

typedef struct Reading {
    Thread *thread;
    Function *function;
    int64_t frame;
} Reading;

static int32_t number(void *context, const char *name) {
    const Function *function = ((Reading *)context)->function;
    int new;
    int32_t found = function_feature(function, name, &new);
    if (new) define_feature(function, found, name);
    return found;
}

/* __qualname__ by the type's layout: a metaclass may have its own idea of attributes. */
static int32_t type_number(void *context, PyTypeObject *type) {
    (void)context;
    const char *name = NULL;
    Py_ssize_t length = 0;
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) name = PyUnicode_AsUTF8AndSize(((PyHeapTypeObject *)type)->ht_qualname, &length);
    if (!name) {
        PyErr_Clear();
        name = strrchr(type->tp_name, '.') ? strrchr(type->tp_name, '.') + 1 : type->tp_name;
        length = (Py_ssize_t)strlen(name);
    }
    int new;
    int32_t found = function_type(name, (size_t)length, &new);
    if (new) define_type(found, name, (size_t)length);
    return found;
}

static void put(void *context, int32_t feature, double value) {
    const Reading *reading = context;
    int64_t bits;
    memcpy(&bits, &value, sizeof value);
    if (feature) event_write(reading->thread, bits, reading->frame, feature, -1, -1, EVENT_FEATURE);
}

void sampling_read(Thread *thread, Function *function, Frame *frame) {
    int64_t begun = clock_ns(&recorder.clock), taken = thread->taken;
    Reading reading = {thread, function, (int64_t)(intptr_t)frame};
    Sink sink = {&reading, number, type_number, put};
    PyObject *called = frame_function(frame);
    Entry entry = {
        .code = function->code,
        .locals = frame->localsplus,
        .globals = frame->f_globals,
        .closure = called && PyFunction_Check(called) ? ((PyFunctionObject *)called)->func_closure : NULL,
    };
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    features_read(&function->program, &entry, &sink);
    if (branches_wanted) branches_open(function, frame);
    PyErr_Restore(type, value, trace);
    /* Waiting for room in the ring has been taken out already. */
    int64_t now = clock_ns(&recorder.clock), spent = now - begun - (thread->taken - taken);
    /* All of it is taken out, so being off the CPU meanwhile is nobody's. */
    if (cpu_may_be_off(&thread->cpu, now)) cpu_off(&thread->cpu, &recorder.clock);
    function->reading_ns += spent;
    thread->taken += spent;
}
