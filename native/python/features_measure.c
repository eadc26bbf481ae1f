/* What is put of one value: its features by the kind of its type. */
#include "features_program.h"

#include <math.h>
#include <stdio.h>

/* In the order of Measure. */
static const char *const SUFFIX[] = {".type",  "",        ".len",      ".sum",      ".size",    ".nbytes",
                                     ".bytes", ".shape[0]", ".shape[1]", ".shape[2]", ".shape[3]"};
_Static_assert(sizeof SUFFIX / sizeof *SUFFIX == MEASURES, "a suffix a measure");

static int may_define(Program *program, int most) { return program->features < most && ++program->features; }

static int32_t define(const Reading *reading, const char *front, const char *middle, const char *back) {
    char name[1024];
    snprintf(name, sizeof name, "%s%s%s", front, middle, back);
    return reading->sink->number(reading->sink->context, name);
}

static void put(const Reading *reading, Place *place, Measure measure, double value) {
    int32_t *number = &place->numbers[measure];
    if (*number == UNASKED) {
        /* Types, lengths and values of parameters are always read, as many as there may be. */
        int is_basic = place->origin == PARAMETER && measure <= LENGTH;
        int may = is_basic || may_define(reading->program, MOST_FEATURES - MOST_PAIRS);
        const char *suffix = measure == VALUE && place->clashes ? ".value" : SUFFIX[measure];
        *number = may ? define(reading, place->label, suffix, "") : REFUSED;
    }
    if (*number != REFUSED) reading->sink->put(reading->sink->context, *number, value);
}

static void put_count(const Reading *reading, Place *place, Measure measure, Py_ssize_t count) {
    if (count >= 0) put(reading, place, measure, (double)count);
}

static void measure_number(const Reading *reading, Place *place) {
    place->is_numeric = (uint8_t)number_value(place->kind, place->value, &place->number);
    if (place->is_numeric) put(reading, place, VALUE, place->number);
}

/* Nobody knows of an empty sequence whether it is one of numbers, unless others here were. */
static void measure_sequence(const Reading *reading, Place *place) {
    double sum;
    put_count(reading, place, LENGTH, Py_SIZE(place->value));
    if (!Py_SIZE(place->value) && place->numbers[SUM] == UNASKED) return;
    if (sum_of(place->value, &sum)) put(reading, place, SUM, sum);
}

static void measure_tensor(const Reading *reading, Place *place) {
    int dimensions;
    Py_ssize_t size = 1;
    const Py_ssize_t *extents = extents_of(place->value, &dimensions);
    if (dimensions && !extents) return;
    for (int at = 0; at < dimensions; at++) {
        if (at < MOST_EXTENTS) put_count(reading, place, (Measure)(EXTENT + at), extents[at]);
        if (__builtin_mul_overflow(size, extents[at], &size)) return;
    }
    put_count(reading, place, SIZE, size);
    put_count(reading, place, BYTES, bytes_of(TENSOR, place->value));
}

static void measure_file(Reading *reading, Place *place) {
    if (reading->files-- <= 0) return;
    Py_ssize_t bytes = place->kind == PATH ? path_bytes(place->value) : file_bytes(place->value);
    put_count(reading, place, FILE_BYTES, bytes);
}

void measure(Reading *reading, Place *place) {
    if (place->origin == PARAMETER) put(reading, place, TYPE, place->type_number);
    switch (place->kind) {
    case INTEGER:
    case TRUTH:
    case FLOATING: measure_number(reading, place); break;
    case SEQUENCE: measure_sequence(reading, place); break;
    case TENSOR: measure_tensor(reading, place); break;
    case PATH: measure_file(reading, place); break;
    case OTHER:
    case OBJECT: break;
    default:
        put_count(reading, place, LENGTH, length_of(place->kind, place->value));
        put_count(reading, place, BYTES, bytes_of(place->kind, place->value));
        if (place->kind == TEXT && place->names_file) measure_file(reading, place);
    }
}

void measure_pair(Reading *reading, Pair *pair) {
    const Place *low = &reading->program->places[pair->low], *high = &reading->program->places[pair->high];
    if (!low->is_numeric || !high->is_numeric) return;
    if (pair->number == UNASKED) {
        int may = may_define(reading->program, MOST_FEATURES);
        pair->number = may ? define(reading, high->label, "-", low->label) : REFUSED;
    }
    double value = high->number - low->number;
    if (pair->number == REFUSED || !isfinite(value)) return;
    reading->sink->put(reading->sink->context, pair->number, value);
}
