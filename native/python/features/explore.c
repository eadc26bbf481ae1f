#include "explore.h"

#include <opcode.h>

#include "layout.h"
#include "names.h"
#include "places.h"
#include "slots.h"

static PyObject *variable_name(PyCodeObject *code, Py_ssize_t index) {
    return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

static void add_parameters(FeatureProgram *program, PyCodeObject *code) {
    int both = CO_OPTIMIZED | CO_NEWLOCALS, has_keywords = (code->co_flags & CO_VARKEYWORDS) != 0;
    if ((code->co_flags & both) != both) return; /* this is the body of a module or a class */
    int count = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + has_keywords;
    for (int index = 0; index < count; index++) {
        PyObject *name = variable_name(code, index);
        /* a comprehension's, which the compiler made up */
        if (PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '.') continue;
        Place *place = place_add(program, PARAMETER, -1, name);
        if (!place) return;
        place->index = index;
        place->is_in_cell = (uint8_t)is_cell_variable(code, index);
        place->is_keywords = has_keywords && index == count - 1;
    }
    program->parameters = program->count;
}

/* Whether something is measured of a value. Of an object that is so only if its attributes are in reach. */
static int is_measurable(PyObject *value, int is_deepest) {
    Kind kind = kind_of(Py_TYPE(value));
    return kind != OTHER && (!has_attributes(kind) || !is_deepest);
}

static int has_place(const FeatureProgram *program, Origin origin, PyObject *name) {
    for (int at = 0; at < program->count; at++)
        if (program->places[at].origin == origin && program->places[at].name == name) return 1;
    return 0;
}

static void add_cells(FeatureProgram *program, const CallEntry *entry) {
    int cells = entry->code->co_nfreevars, first = entry->code->co_nlocalsplus - cells;
    if (!entry->closure || PyTuple_GET_SIZE(entry->closure) < cells) return;
    for (int index = 0; index < cells && program->named_cells < MAX_NAMED; index++) {
        PyObject *cell = PyTuple_GET_ITEM(entry->closure, index), *name = variable_name(entry->code, first + index);
        PyObject *value = PyCell_Check(cell) ? PyCell_GET(cell) : NULL;
        if (!value || !is_measurable(value, 1) || !is_plain_name(name) || has_place(program, CLOSURE, name)) continue;
        Place *place = place_add(program, CLOSURE, -1, name);
        if (!place) return;
        place->index = index;
        program->named_cells++;
    }
}

static void add_global(FeatureProgram *program, const CallEntry *entry, PyObject *name) {
    PyObject *value = string_item(entry->globals, name);
    if (program->named_globals >= MAX_NAMED || !value || !is_measurable(value, 1)) return;
    if (is_plain_name(name) && !has_place(program, GLOBAL, name) && place_add(program, GLOBAL, -1, name))
        program->named_globals++;
}

/* Add the globals that the code names, as it was compiled: specialisation and monitoring write over the code in use. */
static void add_globals(FeatureProgram *program, const CallEntry *entry) {
    if (!entry->globals || PyErr_Occurred()) return; /* PyCode_GetCode may raise, which a pending exception must not meet */
    PyObject *bytes = PyCode_GetCode(entry->code);
    PyErr_Clear();
    if (!bytes) return;
    const unsigned char *text = (const unsigned char *)PyBytes_AS_STRING(bytes);
    unsigned argument = 0;
    for (Py_ssize_t at = 0; at + 1 < PyBytes_GET_SIZE(bytes); at += 2) {
        argument = argument << 8 | text[at + 1];
        if (text[at] == LOAD_GLOBAL && argument >> 1 < (size_t)PyTuple_GET_SIZE(entry->code->co_names))
            add_global(program, entry, PyTuple_GET_ITEM(entry->code->co_names, argument >> 1));
        if (text[at] != EXTENDED_ARG) argument = 0;
    }
    Py_DECREF(bytes);
}

void explore_roots(FeatureProgram *program, const CallEntry *entry) {
    if (!program->explorations++) add_parameters(program, entry->code);
    add_cells(program, entry);
    add_globals(program, entry);
}

typedef struct Exploration {
    FeatureProgram *program;
    const CallEntry *entry;
    int parent, max_children;
    int only_named; /* only attributes that the function's code names; these come first */
} Exploration;

static int is_named(PyCodeObject *code, PyObject *name) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(code->co_names); at++)
        if (is_same_string(PyTuple_GET_ITEM(code->co_names, at), name)) return 1;
    return 0;
}

static int has_child(const FeatureProgram *program, int parent, PyObject *name) {
    for (int at = parent + 1; at < program->count; at++) {
        const Place *place = &program->places[at];
        int is_child = place->origin >= ATTRIBUTE && place->parent == parent;
        if (is_child && is_same_string(place->name, name)) return 1;
    }
    return 0;
}

/* Whether a name is like __name__, which is the interpreter's. */
static int is_special(PyObject *name) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    return length > 4 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_' &&
           PyUnicode_READ_CHAR(name, length - 1) == '_' && PyUnicode_READ_CHAR(name, length - 2) == '_';
}

static int add_child(void *context, PyObject *name, PyObject *value) {
    Exploration *here = context;
    FeatureProgram *program = here->program;
    Place *parent = &program->places[here->parent];
    int depth = parent->depth + 1;
    if (parent->children >= here->max_children) return 0;
    if (here->only_named && !is_named(here->entry->code, name)) return 1;
    int is_item = parent->kind == MAPPING;
    if (is_item ? !is_number(kind_of(Py_TYPE(value))) : !is_measurable(value, depth >= MAX_DEPTH)) return 1;
    if (!is_plain_name(name) || is_special(name) || has_child(program, here->parent, name)) return 1;
    Place *child = place_add(program, is_item ? KEY : ATTRIBUTE, here->parent, name);
    if (!child) return 0;
    child->depth = (uint8_t)depth;
    program->places[here->parent].children++; /* the array may have moved */
    return 1;
}

/* Add the numbers of a dictionary of settings: all keyword arguments, else those items whose keys the code names. A
 * dictionary of data may have millions of other keys. */
static void explore_items(Exploration *here) {
    Place place = here->program->places[here->parent];
    if (place.is_keywords) {
        visit_items(place.value, add_child, here);
        return;
    }
    PyObject *constants = here->entry->code->co_consts;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(constants); at++) {
        PyObject *key = PyTuple_GET_ITEM(constants, at), *value = string_item(place.value, key);
        if (value && !add_child(here, key, value)) return;
    }
}

void explore_value(FeatureProgram *program, int parent, const CallEntry *entry) {
    Place place = program->places[parent];
    Exploration here = {program, entry, parent, place.kind == MAPPING ? MAX_KEYS : MAX_ATTRIBUTES, 0};
    if (place.depth >= MAX_DEPTH || place.origin == CLOSURE || place.origin == GLOBAL) return;
    if (place.kind == MAPPING) explore_items(&here);
    if (!has_attributes(place.kind)) return;
    if (place.kind == NAMED) visit_fields(place.value, add_child, &here);
    for (here.only_named = 1; here.only_named >= 0; here.only_named--) {
        visit_instance(place.value, add_child, &here);
        visit_slots(place.value, add_child, &here);
    }
}

static int has_difference(const FeatureProgram *program, int lower, int upper) {
    for (int at = 0; at < program->difference_count; at++)
        if (program->differences[at].lower == lower && program->differences[at].upper == upper) return 1;
    return 0;
}

static void add_differences(FeatureProgram *program, int lower) {
    for (int upper = 0; upper < program->count && program->difference_count < MAX_DIFFERENCES; upper++) {
        const Place *one = &program->places[lower], *other = &program->places[upper];
        if (other->is_numeric && are_counterparts(one, other) && !has_difference(program, lower, upper))
            program->differences[program->difference_count++] = (Difference){(int16_t)lower, (int16_t)upper, NOT_NUMBERED};
    }
}

void explore_differences(FeatureProgram *program) {
    for (int lower = 0; lower < program->count; lower++)
        if (program->places[lower].is_numeric && program->places[lower].bound.family) add_differences(program, lower);
}
