/* Finds the places that are worth reading: what the parameters hold, and what globals and cells the code names. */
#include "features_program.h"

#include <opcode.h>
#include <string.h>

static PyObject *variable_name(PyCodeObject *code, Py_ssize_t index) {
    return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

static void add_parameters(Program *program, PyCodeObject *code) {
    int both = CO_OPTIMIZED | CO_NEWLOCALS, has_keywords = (code->co_flags & CO_VARKEYWORDS) != 0;
    if ((code->co_flags & both) != both) return; /* the body of a module or a class */
    int count = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + has_keywords;
    for (int index = 0; index < count; index++) {
        PyObject *name = variable_name(code, index);
        if (PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '.') continue; /* of a comprehension */
        Place *place = place_add(program, PARAMETER, -1, name);
        if (!place) return;
        place->index = index;
        place->in_cell = (uint8_t)lies_in_cell(code, index);
        place->keywords = has_keywords && index == count - 1;
    }
    program->parameters = program->count;
}

/* Something is measured of such a value wherever it lies; of an object only where its attributes are in reach. */
static int is_worth(PyObject *value, int deepest) {
    Kind kind = kind_of(Py_TYPE(value));
    return kind != OTHER && (kind != OBJECT || !deepest);
}

static int is_place(const Program *program, Origin origin, PyObject *name) {
    for (int at = 0; at < program->count; at++)
        if (program->places[at].origin == origin && program->places[at].name == name) return 1;
    return 0;
}

static void add_cells(Program *program, const Entry *entry) {
    int cells = entry->code->co_nfreevars, first = entry->code->co_nlocalsplus - cells;
    if (!entry->closure || PyTuple_GET_SIZE(entry->closure) < cells) return;
    for (int index = 0; index < cells && program->named_cells < MOST_NAMED; index++) {
        PyObject *cell = PyTuple_GET_ITEM(entry->closure, index), *name = variable_name(entry->code, first + index);
        PyObject *value = PyCell_Check(cell) ? PyCell_GET(cell) : NULL;
        if (!value || !is_worth(value, 1) || !is_plain_name(name) || is_place(program, CLOSURE, name)) continue;
        Place *place = place_add(program, CLOSURE, -1, name);
        if (!place) return;
        place->index = index;
        program->named_cells++;
    }
}

static void add_global(Program *program, const Entry *entry, PyObject *name) {
    PyObject *value = text_item(entry->globals, name);
    if (program->named_globals >= MOST_NAMED || !value || !is_worth(value, 1)) return;
    if (is_plain_name(name) && !is_place(program, GLOBAL, name) && place_add(program, GLOBAL, -1, name))
        program->named_globals++;
}

/* The code as it was compiled, without what specialisation and monitoring wrote over it. */
static void add_globals(Program *program, const Entry *entry) {
    if (!entry->globals || PyErr_Occurred()) return; /* a pending exception must not meet one of ours */
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

void explore_roots(Program *program, const Entry *entry) {
    if (!program->explorations++) add_parameters(program, entry->code);
    add_cells(program, entry);
    add_globals(program, entry);
}

typedef struct Exploration {
    Program *program;
    const Entry *entry;
    int parent, most;
    int only_named; /* attributes that the function's code names come first */
} Exploration;

static int is_named(PyCodeObject *code, PyObject *name) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(code->co_names); at++)
        if (is_same_text(PyTuple_GET_ITEM(code->co_names, at), name)) return 1;
    return 0;
}

static int is_child(const Program *program, int parent, PyObject *name) {
    for (int at = parent + 1; at < program->count; at++) {
        const Place *place = &program->places[at];
        int same = place->origin >= ATTRIBUTE && place->parent == parent;
        if (same && is_same_text(place->name, name)) return 1;
    }
    return 0;
}

static int is_special(PyObject *name) { /* __name__: the interpreter's */
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    return length > 4 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_' &&
           PyUnicode_READ_CHAR(name, length - 1) == '_' && PyUnicode_READ_CHAR(name, length - 2) == '_';
}

static int add_child(void *context, PyObject *name, PyObject *value) {
    Exploration *here = context;
    Program *program = here->program;
    Place *parent = &program->places[here->parent];
    int depth = parent->depth + 1;
    if (parent->children >= here->most) return 0;
    if (here->only_named && !is_named(here->entry->code, name)) return 1;
    if (parent->keywords ? !is_number(kind_of(Py_TYPE(value))) : !is_worth(value, depth >= DEEPEST)) return 1;
    if (!is_plain_name(name) || is_special(name) || is_child(program, here->parent, name)) return 1;
    Place *child = place_add(program, parent->keywords ? KEY : ATTRIBUTE, here->parent, name);
    if (!child) return 0;
    child->depth = (uint8_t)depth;
    program->places[here->parent].children++; /* the array may have moved */
    return 1;
}

void explore_value(Program *program, int parent, const Entry *entry) {
    Place place = program->places[parent];
    Exploration here = {program, entry, parent, place.keywords ? MOST_KEYS : MOST_OF_OBJECT, 0};
    if (place.keywords && place.kind == MAPPING) visit_items(place.value, add_child, &here);
    if (place.kind != OBJECT || place.depth >= DEEPEST || place.origin == CLOSURE || place.origin == GLOBAL) return;
    for (here.only_named = 1; here.only_named >= 0; here.only_named--) {
        visit_held(place.value, add_child, &here);
        visit_slots(place.value, add_child, &here);
    }
}

static int is_pair(const Program *program, int low, int high) {
    for (int at = 0; at < program->pairs; at++)
        if (program->pair[at].low == low && program->pair[at].high == high) return 1;
    return 0;
}

static void add_pairs(Program *program, int low) {
    for (int high = 0; high < program->count && program->pairs < MOST_PAIRS; high++) {
        const Place *one = &program->places[low], *other = &program->places[high];
        if (other->is_numeric && are_counterparts(one, other) && !is_pair(program, low, high))
            program->pair[program->pairs++] = (Pair){(int16_t)low, (int16_t)high, UNASKED};
    }
}

void explore_pairs(Program *program) {
    for (int low = 0; low < program->count; low++)
        if (program->places[low].is_numeric && program->places[low].edge.family) add_pairs(program, low);
}
