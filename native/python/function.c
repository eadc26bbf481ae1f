/* What is known of a code object, kept with it: found by one look into the object, freed when it is. */
#include "branches.h"
#include "greenlets.h"
#include "lines_count.h"

#include <stdlib.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

Py_ssize_t function_place = -1;
int function_is_direct;

static void function_free(void *held) {
    Function *function = held;
    if (!function) return;
    features_free(function->program);
    branches_free(function);
    free(function->skips);
    free(function->name);
    free(function);
}

int function_start(void) {
    if (function_place < 0) function_place = PyUnstable_Eval_RequestCodeExtraIndex(function_free);
    return function_place >= 0;
}

static Function *made(Frame *frame) {
    int64_t since = thread_pause();
    Function *function = calloc(1, sizeof *function);
    if (!function) return NULL;
    function->code = frame_code(frame);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the target may be unwinding */
    naming_classify(function, frame);
    if (!greenlets_in_use) greenlets_look();
    int error = PyUnstable_Code_SetExtra((PyObject *)function->code, function_place, function);
    PyErr_Restore(type, value, trace);
    thread_take_out(since);
    if (!error) return function;
    function_free(function);
    return NULL;
}

Function *function_known(PyCodeObject *code) {
    void *known = NULL;
    PyUnstable_Code_GetExtra((PyObject *)code, function_place, &known);
    return known;
}

Function *function_find(Frame *frame) {
    Function *known = function_known(frame_code(frame));
    return known ? known : made(frame);
}

Function *function_of_code(PyCodeObject *code) {
    Function *known = function_known(code), *function = known ? known : calloc(1, sizeof *function);
    if (!function || known) return function;
    function->code = code;
    if (!PyUnstable_Code_SetExtra((PyObject *)code, function_place, function)) {
        /* The layout of co_extra is not the interpreter's promise: it is read directly where it proves to be as known. */
        const Extra *extra = code->co_extra;
        function_is_direct = extra->size > function_place && extra->items[function_place] == function;
        return function;
    }
    free(function);
    return NULL;
}

/* ---- numbers of components: the same for code objects of equal name, file and line ---- */

typedef struct Numbers {
    struct Entry64 {
        uint64_t key;
        int32_t number;
    } *slots;
    uint32_t used, room;
} Numbers;
static Numbers components, features;

static void numbers_clear(Numbers *numbers) {
    free(numbers->slots);
    *numbers = (Numbers){0};
}

static struct Entry64 *seek(const Numbers *numbers, uint64_t key) {
    uint32_t at = (uint32_t)(key ^ key >> 32);
    while (numbers->slots[at & (numbers->room - 1)].number && numbers->slots[at & (numbers->room - 1)].key != key) at++;
    return &numbers->slots[at & (numbers->room - 1)];
}

static int enlarge(Numbers *numbers) {
    Numbers larger = {.room = numbers->room ? numbers->room * 2 : 256, .used = numbers->used};
    larger.slots = calloc(larger.room, sizeof *larger.slots);
    if (!larger.slots) return 0;
    for (uint32_t at = 0; at < numbers->room; at++)
        if (numbers->slots[at].number) *seek(&larger, numbers->slots[at].key) = numbers->slots[at];
    free(numbers->slots);
    *numbers = larger;
    return 1;
}

/* The number of a key; *new says whether it was given just now. 0 if there are `most` already. */
static int32_t number_of(Numbers *numbers, uint64_t key, uint32_t most, int *new) {
    *new = 0;
    if (numbers->used * 2 >= numbers->room && !enlarge(numbers)) return 0;
    struct Entry64 *entry = seek(numbers, key);
    if (!entry->number && numbers->used < most) {
        *entry = (struct Entry64){key, (int32_t)++numbers->used};
        *new = 1;
    }
    return entry->number;
}

/* FNV-1a of 64 bits, over all parts in turn. Two names in 10^9 programs may share a number. */
static uint64_t mixed(uint64_t key, const void *data, size_t length) {
    for (const unsigned char *at = data; length--; at++) key = (key ^ *at) * 0x100000001b3ull;
    return (key ^ 0xff) * 0x100000001b3ull;
}

static uint64_t key_of(const Function *function) {
    Py_ssize_t length;
    PyObject *file = function->code->co_filename;
    uint64_t key = mixed(0xcbf29ce484222325ull, function->name, strlen(function->name));
    length = PyUnicode_GET_LENGTH(file) * (Py_ssize_t)PyUnicode_KIND(file);
    key = mixed(key, PyUnicode_DATA(file), (size_t)length);
    return mixed(key, &function->code->co_firstlineno, sizeof(int));
}

int32_t function_define(Function *function) {
    if (function->process != recorder.process) {
        int new;
        int64_t since = thread_pause();
        function->number = function->name ? number_of(&components, key_of(function), MOST_COMPONENTS, &new) : 0;
        function->process = recorder.process;
        features_free(function->program); /* it knows numbers of features of the process before */
        function->program = NULL;
        if (function->number && function->mode == FROM_OWN) recorder.library--;
        if (new) define_component(function, function->number);
        if (function->number) branches_meet(function);
        if (function->number) lines_meet(function);
        thread_take_out(since);
    }
    return function->number;
}

int32_t function_define_aside(const char *name) {
    int new;
    int64_t since = thread_pause();
    int32_t number = number_of(&components, mixed(0xcbf29ce484222325ull, name, strlen(name)), MOST_COMPONENTS, &new);
    if (new) define_aside(number, name);
    thread_take_out(since);
    return number;
}

int32_t function_feature(const Function *function, const char *name, int *new) {
    uint64_t key = mixed(0x9e3779b97f4a7c15ull, &function->number, sizeof function->number);
    return number_of(&features, mixed(key, name, strlen(name)), UINT32_MAX >> 1, new);
}

static Numbers types;
int32_t function_type(const char *name, size_t length, int *new) {
    return number_of(&types, mixed(0xcbf29ce484222325ull, name, length), UINT32_MAX >> 1, new);
}

void function_forget_numbers(void) {
    numbers_clear(&components);
    numbers_clear(&features);
    numbers_clear(&types);
}
