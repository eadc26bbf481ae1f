/* Places: made, labelled and forgotten. */
#include "features_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make_room(Program *program) {
    if (program->count < program->room) return 1;
    int room = program->room ? program->room * 2 : 8;
    Place *places = realloc(program->places, (size_t)room * sizeof *places);
    if (!places) return 0;
    program->places = places;
    program->room = room;
    return 1;
}

static char *label_of(const Program *program, Origin origin, int parent, const char *name) {
    static const char *const PREFIX[] = {[PARAMETER] = "", [CLOSURE] = "closure.", [GLOBAL] = "globals."};
    const char *front = origin < ATTRIBUTE ? PREFIX[origin] : program->places[parent].label;
    size_t room = strlen(front) + strlen(name) + 2;
    char *label = malloc(room);
    if (label) snprintf(label, room, "%s%s%s", front, origin < ATTRIBUTE ? "" : ".", name);
    return label;
}

static int is_measure(const char *name) { return !strcmp(name, "type") || !strcmp(name, "len"); }

static int names_file(const char *name) { return strcasestr(name, "path") || strcasestr(name, "file"); }

Place *place_add(Program *program, Origin origin, int parent, PyObject *name) {
    char text[4096];
    if (origin != PARAMETER && program->count - program->parameters >= MOST_PLACES) return NULL;
    if (utf8_of(name, text, sizeof text) < 0 || !make_room(program)) return NULL;
    char *label = label_of(program, origin, parent, text);
    if (!label) return NULL;
    Place *place = &program->places[program->count++];
    *place = (Place){.origin = origin, .parent = (int16_t)parent, .name = name, .label = label, .edge = edge_of(text)};
    place->names_file = origin == PARAMETER && names_file(text);
    place->clashes = origin >= ATTRIBUTE && is_measure(text);
    for (int at = 0; at < MEASURES; at++) place->numbers[at] = UNASKED;
    Py_INCREF(name);
    return place;
}

void places_free(Program *program) {
    for (int at = 0; at < program->count; at++) {
        Py_DECREF(program->places[at].name); /* a str: nothing of the target's runs when it goes */
        free(program->places[at].label);
    }
    free(program->places);
}
