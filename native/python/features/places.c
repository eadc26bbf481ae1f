#include "places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

static int make_room(FeatureProgram *program) {
    if (program->count < program->capacity) return 1;
    int capacity = program->capacity ? program->capacity * 2 : 8;
    Place *places = realloc(program->places, (size_t)capacity * sizeof *places);
    if (!places) return 0;
    program->places = places;
    program->capacity = capacity;
    return 1;
}

static char *label_of(const FeatureProgram *program, Origin origin, int parent, const char *name) {
    static const char *const PREFIX[] = {[PARAMETER] = "", [CLOSURE] = "closure.", [GLOBAL] = "globals."};
    const char *front = origin < ATTRIBUTE ? PREFIX[origin] : program->places[parent].label;
    size_t length = strlen(front) + strlen(name) + 2;
    char *label = malloc(length);
    if (label) snprintf(label, length, "%s%s%s", front, origin < ATTRIBUTE ? "" : ".", name);
    return label;
}

/* Whether the label of such an attribute would read like a feature of its parent. */
static int is_measure(const char *name) { return !strcmp(name, "type") || !strcmp(name, "len"); }

static int names_file(const char *name) { return strcasestr(name, "path") || strcasestr(name, "file"); }

Place *place_add(FeatureProgram *program, Origin origin, int parent, PyObject *name) {
    char text[4096];
    if (origin != PARAMETER && program->count - program->parameters >= MAX_PLACES) return NULL;
    if (utf8_of(name, text, sizeof text) < 0 || !make_room(program)) return NULL;
    char *label = label_of(program, origin, parent, text);
    if (!label) return NULL;
    Place *place = &program->places[program->count++];
    *place = (Place){.origin = origin, .parent = (int16_t)parent, .name = name, .label = label};
    place->bound = bound_word_of(text);
    place->names_file = origin == PARAMETER && names_file(text);
    place->clashes = origin >= ATTRIBUTE && is_measure(text);
    for (int at = 0; at < MEASURES; at++) place->numbers[at] = NOT_NUMBERED;
    Py_INCREF(name);
    return place;
}

void places_free(FeatureProgram *program) {
    for (int at = 0; at < program->count; at++) {
        Py_DECREF(program->places[at].name); /* it is a str, so nothing of the program's runs when it goes */
        free(program->places[at].label);
    }
    free(program->places);
}
