/* Reading: one pass over the places of the program, which grows at the same time while the function is explored. */
#include "features_program.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CALLS = 16,      /* explore */
    LATER_CALLS = 2,       /* so does each later exploration */
    MOST_MISSES = 64,      /* types that differ from what the program expects lead to another exploration, */
    MOST_EXPLORATIONS = 40 /* calls in all that may explore */
};

static PyObject *unwrapped(PyObject *cell) { return cell && PyCell_Check(cell) ? PyCell_GET(cell) : cell; }

static PyObject *closure_value(const Entry *entry, Py_ssize_t index) {
    if (!entry->closure || index >= PyTuple_GET_SIZE(entry->closure)) return NULL;
    return unwrapped(PyTuple_GET_ITEM(entry->closure, index));
}

static PyObject *attribute_value(Place *place, const Place *parent) {
    if (!parent->value || parent->kind != OBJECT) return NULL;
    if (place->resolved_in != parent->epoch) {
        place->offset = slot_offset(Py_TYPE(parent->value), place->name);
        place->resolved_in = parent->epoch;
    }
    if (place->offset) return slot_value(parent->value, place->offset);
    return held_attribute(parent->value, place->name, &place->index);
}

static PyObject *key_value(const Place *place, const Place *parent) {
    return parent->value && parent->kind == MAPPING ? text_item(parent->value, place->name) : NULL;
}

static PyObject *fetch(Program *program, Place *place, const Entry *entry) {
    const Place *parent = place->origin >= ATTRIBUTE ? &program->places[place->parent] : NULL;
    switch (place->origin) {
    case PARAMETER: {
        PyObject *value = entry->locals[place->index];
        return place->in_cell ? unwrapped(value) : value;
    }
    case CLOSURE: return closure_value(entry, place->index);
    case GLOBAL: return text_item(entry->globals, place->name);
    case ATTRIBUTE: return attribute_value(place, parent);
    default: return key_value(place, parent);
    }
}

/* Another type than last time, or one that cannot be recognised: what was learnt of the type is learnt anew. */
static void meet_type(Reading *reading, Place *place, PyTypeObject *type) {
    place->kind = kind_of(type);
    place->type = type;
    place->tag = type_tag(type);
    place->epoch++;
    if (place->origin == PARAMETER) place->type_number = reading->sink->type(reading->sink->context, type);
    reading->program->misses += place->kind == OBJECT;
}

static void look(Reading *reading, Place *place) {
    place->value = fetch(reading->program, place, reading->entry);
    place->is_numeric = 0;
    if (!place->value) return;
    PyTypeObject *type = Py_TYPE(place->value);
    if (type != place->type || type_tag(type) != place->tag || !place->tag) meet_type(reading, place, type);
}

static void begin(Program *program, const Entry *entry) {
    if (program->misses > MOST_MISSES && program->explorations < MOST_EXPLORATIONS) program->exploring = LATER_CALLS;
    if (!program->exploring) return;
    program->misses = 0;
    explore_roots(program, entry);
}

static void read_places(Reading *reading) {
    Program *program = reading->program;
    for (int at = 0; at < program->count; at++) {
        look(reading, &program->places[at]);
        if (!program->places[at].value) continue;
        if (program->exploring) explore_value(program, at, reading->entry);
        measure(reading, &program->places[at]);
    }
}

void features_read(Program **made, const Entry *entry, const Sink *sink) {
    if (!*made && !(*made = calloc(1, sizeof **made))) return;
    Program *program = *made;
    if (!program->explorations) program->exploring = FIRST_CALLS;
    Reading reading = {program, entry, sink, MOST_FILES};
    begin(program, entry);
    read_places(&reading);
    if (program->exploring) explore_pairs(program);
    for (int at = 0; at < program->pairs; at++) measure_pair(&reading, &program->pair[at]);
    if (program->exploring) program->exploring--;
}

void features_free(Program *program) {
    if (!program) return;
    places_free(program);
    free(program);
}
