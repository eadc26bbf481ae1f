#include "sampling.h"

#include <stdlib.h>
#include <string.h>

#include "python/counts/branches.h"
#include "definitions.h"
#include "numbers.h"
#include "stamps.h"
#include "threads.h"

int32_t sampling_enter(Thread *thread, Function *function, int *read) {
    if (!function->sampler && !(function->sampler = calloc(1, sizeof *function->sampler))) return -1;
    ReadingTime time = {
        clock_ns(&recording.clock) - recording.started_ns, recording.reading_ns, recording.settings.fake_clock};
    uint32_t size = skips_sample_size(numbers_of_components());
    if (function->is_observed) { /* the sample of observations is not made smaller */
        time.reading_ns = 0;
        size = SKIPS_SAMPLE_SIZE;
    }
    SamplerChoice choice = sampler_choose(function->sampler, &time, size, &thread->random_state);
    if (choice.is_bounded) define_sample(function, choice.bits);
    *read = choice.is_read;
    function->countdown = function->sampler->span;
    return choice.key;
}

/* ---- features to records ---- */

/* The invocation whose features are read. */
typedef struct Reading {
    Thread *thread;
    Function *function;
    int64_t frame;
} Reading;

static int32_t feature_number(void *context, const char *name) {
    const Function *function = ((Reading *)context)->function;
    int is_new;
    int32_t number = number_of_feature(function, name, &is_new);
    if (is_new) define_feature(function, number, name);
    return number;
}

/* A type is known by its __qualname__, read from the type's layout: a metaclass may define other attributes. */
static int32_t type_number(void *context, PyTypeObject *type) {
    (void)context;
    const char *name = NULL;
    Py_ssize_t length = 0;
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        name = PyUnicode_AsUTF8AndSize(((PyHeapTypeObject *)type)->ht_qualname, &length);
    if (!name) {
        PyErr_Clear();
        name = strrchr(type->tp_name, '.') ? strrchr(type->tp_name, '.') + 1 : type->tp_name;
        length = (Py_ssize_t)strlen(name);
    }
    int is_new;
    int32_t number = number_of_type(name, (size_t)length, &is_new);
    if (is_new) define_type(number, name, (size_t)length);
    return number;
}

static void write_value(void *context, int32_t feature, double value) {
    const Reading *reading = context;
    int64_t bits;
    memcpy(&bits, &value, sizeof value);
    if (feature) thread_write(reading->thread, bits, reading->frame, feature, -1, -1, EVENT_FEATURE);
}

void sampling_read(Thread *thread, Function *function, Frame *frame, int is_first) {
    int64_t stamp = overhead_begin();
    Reading reading = {thread, function, (int64_t)(intptr_t)frame};
    FeatureSink sink = {&reading, feature_number, type_number, write_value};
    PyObject *called = frame_function(frame);
    CallEntry entry = {
        .code = function->code,
        .locals = frame->localsplus,
        .globals = frame->f_globals,
        .closure = called && PyFunction_Check(called) ? ((PyFunctionObject *)called)->func_closure : NULL,
    };
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the program may be handling an exception */
    features_read(&function->program, &entry, &sink);
    if (branches_wanted) counting_begin(function, frame);
    PyErr_Restore(type, value, trace);
    int64_t spent = overhead_end(stamp);
    if (is_first) recording.observing_ns += spent;
    else {
        function->sampler->reading_ns += spent;
        recording.reading_ns += spent;
    }
}
