/* The reading of a call: one pass over the places of the program, which grows meanwhile if the function is explored. */
#include <stdlib.h>

#include "explore.h"
#include "layout.h"
#include "measure.h"
#include "places.h"
#include "slots.h"

enum {
    FIRST_CALLS = 16,     /* calls that explore at first */
    LATER_CALLS = 2,      /* calls that explore in each later exploration */
    MAX_MISSES = 64,      /* objects of unexpected types, beyond which the function is explored again */
    MAX_EXPLORATIONS = 40 /* calls in all that may explore */
};

/* The value in a cell; another object is its own value. */
static PyObject *cell_value(PyObject *cell) { return cell && PyCell_Check(cell) ? PyCell_GET(cell) : cell; }

static PyObject *closure_value(const CallEntry *entry, Py_ssize_t index) {
    if (!entry->closure || index >= PyTuple_GET_SIZE(entry->closure)) return NULL;
    return cell_value(PyTuple_GET_ITEM(entry->closure, index));
}

static PyObject *attribute_value(Place *place, const Place *parent) {
    if (!parent->value || !has_attributes(parent->kind)) return NULL;
    if (place->resolved_in != parent->epoch) {
        place->field = parent->kind == NAMED ? field_index(Py_TYPE(parent->value), place->name) : -1;
        place->offset = slot_offset(Py_TYPE(parent->value), place->name);
        place->resolved_in = parent->epoch;
    }
    if (place->field >= 0) return field_value(parent->value, place->field);
    if (place->offset) return slot_value(parent->value, place->offset);
    return instance_attribute(parent->value, place->name, &place->index);
}

static PyObject *key_value(const Place *place, const Place *parent) {
    return parent->value && parent->kind == MAPPING ? string_item(parent->value, place->name) : NULL;
}

static PyObject *fetch(FeatureProgram *program, Place *place, const CallEntry *entry) {
    const Place *parent = place->origin >= ATTRIBUTE ? &program->places[place->parent] : NULL;
    switch (place->origin) {
    case PARAMETER: {
        PyObject *value = entry->locals[place->index];
        return place->is_in_cell ? cell_value(value) : value;
    }
    case CLOSURE: return closure_value(entry, place->index);
    case GLOBAL: return string_item(entry->globals, place->name);
    case ATTRIBUTE: return attribute_value(place, parent);
    default: return key_value(place, parent);
    }
}

/* The type is another than last time, or cannot be recognised: learn about it anew. */
static void learn_type(FeatureReading *reading, Place *place, PyTypeObject *type) {
    place->kind = kind_of(type);
    place->type = type;
    place->tag = type_tag(type);
    place->epoch++;
    if (place->origin == PARAMETER) place->type_number = reading->sink->type_number(reading->sink->context, type);
    reading->program->misses += has_attributes(place->kind);
}

static void look(FeatureReading *reading, Place *place) {
    place->value = fetch(reading->program, place, reading->entry);
    place->is_numeric = 0;
    if (!place->value) return;
    PyTypeObject *type = Py_TYPE(place->value);
    if (type != place->type || type_tag(type) != place->tag || !place->tag) learn_type(reading, place, type);
}

static void begin(FeatureProgram *program, const CallEntry *entry) {
    if (program->misses > MAX_MISSES && program->explorations < MAX_EXPLORATIONS) program->exploring = LATER_CALLS;
    if (!program->exploring) return;
    program->misses = 0;
    explore_roots(program, entry);
}

static void read_places(FeatureReading *reading) {
    FeatureProgram *program = reading->program;
    for (int at = 0; at < program->count; at++) {
        look(reading, &program->places[at]);
        if (!program->places[at].value) continue;
        if (program->exploring) explore_value(program, at, reading->entry);
        measure_value(reading, &program->places[at]);
    }
}

void features_read(FeatureProgram **created, const CallEntry *entry, const FeatureSink *sink) {
    if (!*created && !(*created = calloc(1, sizeof **created))) return;
    FeatureProgram *program = *created;
    if (!program->explorations) program->exploring = FIRST_CALLS;
    FeatureReading reading = {program, entry, sink, MAX_FILES};
    begin(program, entry);
    read_places(&reading);
    if (program->exploring) explore_differences(program);
    for (int at = 0; at < program->difference_count; at++) measure_difference(&reading, &program->differences[at]);
    if (program->exploring) program->exploring--;
}

void features_free(FeatureProgram *program) {
    if (!program) return;
    places_free(program);
    free(program);
}
