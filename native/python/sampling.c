#include "sampling.h"

#include <stdlib.h>
#include <string.h>

#include "python/counts/branches.h"
#include "definitions.h"
#include "numbers.h"
#include "stamps.h"
#include "threads.h"

/* All reading takes about a tenth of the time: beyond that, functions that were read often keep smaller samples. Reading
 * beyond the samples takes at most a fiftieth of the time; but a function that takes less than a two-thousandth of it by
 * reading is read even so, because those that are called seldom need it most. */
enum { BUDGET_SHARE = 10, SHARE = 50, ALWAYS_SHARE = 2000, MAX_GAP = 4096 };
enum { LEAST_SAMPLE = 32, FREE_NS = 1000000 }; /* FREE_NS: what reading may take in any program */

static int64_t passed_ns(void) { return clock_ns(&recording.clock) - recording.started_ns; }

static int is_over_budget(int64_t passed) { return (recording.reading_ns - FREE_NS) * BUDGET_SHARE > passed; }

/* Whether reading the features of a call that is not sampled stays within its share of the time. What was read because
 * it is sampled counts as well, for a program is not to be slowed down by both. */
static int is_cheap(Function *function) {
    int64_t passed = passed_ns();
    int cheap = recording.reading_ns * SHARE <= passed ||
                (function->reading_ns * ALWAYS_SHARE <= passed && !is_over_budget(passed));
    cheap &= !recording.settings.fake_clock;
    function->gap = cheap ? 0 : function->gap < MAX_GAP ? function->gap * 2 + 1 : MAX_GAP;
    return cheap;
}

/* The priority of a candidate. If reading takes too long, the function's sample becomes half as large. The reservoir does
 * not know that, so the bound of the priorities is defined: those above it would all be of early calls. */
static int32_t draw(Thread *thread, Function *function) {
    uint32_t size = skips_sample_size(numbers_of_components()) >> function->sample_cuts, before = function->skips->halvings;
    int is_least = size <= LEAST_SAMPLE;
    int32_t key = skips_draw(function->skips, is_least && function->sample_cuts ? LEAST_SAMPLE : size, &thread->random_state);
    int is_halved = function->skips->halvings != before;
    if (is_halved && function->sample_cuts) define_sample(function, SKIPS_BITS - function->skips->halvings);
    if (!is_halved && !is_least && is_over_budget(passed_ns())) function->sample_cuts++;
    return key;
}

int32_t sampling_enter(Thread *thread, Function *function, int *read) {
    int32_t key = -1;
    if (!function->skips && !(function->skips = calloc(1, sizeof *function->skips))) return -1;
    function->until_key -= function->span;
    if (function->until_key <= 0) {
        key = draw(thread, function);
        function->until_key = skips_next(function->skips, &thread->random_state);
    } else {
        function->until_key--;
    }
    *read = is_cheap(function) || key >= 0;
    function->span = function->until_key < function->gap ? function->until_key : function->gap;
    function->countdown = function->span;
    return key;
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

void sampling_read(Thread *thread, Function *function, Frame *frame) {
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
    function->reading_ns += spent;
    recording.reading_ns += spent;
}
