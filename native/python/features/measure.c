#include "measure.h"

#include <math.h>
#include <stdio.h>

#include "files.h"
#include "sizes.h"

/* In the order of Measure. */
static const char *const SUFFIX[] = {".type",  "",        ".len",      ".sum",      ".size",    ".nbytes",
                                     ".bytes", ".shape[0]", ".shape[1]", ".shape[2]", ".shape[3]"};
_Static_assert(sizeof SUFFIX / sizeof *SUFFIX == MEASURES, "a suffix a measure");

static int may_define(FeatureProgram *program, int max) { return program->features < max && ++program->features; }

static int32_t define(const FeatureReading *reading, const char *front, const char *middle, const char *back) {
    char name[1024];
    snprintf(name, sizeof name, "%s%s%s", front, middle, back);
    return reading->sink->number(reading->sink->context, name);
}

static void write_feature(const FeatureReading *reading, Place *place, Measure measure, double value) {
    int32_t *number = &place->numbers[measure];
    if (*number == NOT_NUMBERED) {
        /* Types, lengths and values of parameters are always read, however many they are. */
        int is_basic = place->origin == PARAMETER && measure <= LENGTH;
        int may = is_basic || may_define(reading->program, MAX_FEATURES - MAX_DIFFERENCES);
        const char *suffix = measure == VALUE && place->clashes ? ".value" : SUFFIX[measure];
        *number = may ? define(reading, place->label, suffix, "") : REFUSED;
    }
    if (*number != REFUSED) reading->sink->write(reading->sink->context, *number, value);
}

static void write_count(const FeatureReading *reading, Place *place, Measure measure, Py_ssize_t count) {
    if (count >= 0) write_feature(reading, place, measure, (double)count);
}

static void measure_number(const FeatureReading *reading, Place *place) {
    place->is_numeric = (uint8_t)number_value(place->kind, place->value, &place->number);
    if (place->is_numeric) write_feature(reading, place, VALUE, place->number);
}

/* An empty sequence may or may not be one of numbers; it has a sum only if another one in this place had. */
static void measure_sequence(const FeatureReading *reading, Place *place) {
    double sum;
    write_count(reading, place, LENGTH, Py_SIZE(place->value));
    if (!Py_SIZE(place->value) && place->numbers[SUM] == NOT_NUMBERED) return;
    if (sum_of(place->value, &sum)) write_feature(reading, place, SUM, sum);
}

static void measure_tensor(const FeatureReading *reading, Place *place) {
    int dimensions;
    Py_ssize_t size = 1;
    const Py_ssize_t *extents = extents_of(place->value, &dimensions);
    if (dimensions && !extents) return;
    for (int at = 0; at < dimensions; at++) {
        if (at < MAX_EXTENTS) write_count(reading, place, (Measure)(EXTENT + at), extents[at]);
        if (__builtin_mul_overflow(size, extents[at], &size)) return;
    }
    write_count(reading, place, SIZE, size);
    write_count(reading, place, BYTES, bytes_of(TENSOR, place->value));
}

static void measure_file(FeatureReading *reading, Place *place) {
    if (reading->files_left-- <= 0) return;
    Py_ssize_t bytes = place->kind == PATH ? bytes_of_path(place->value) : bytes_of_named_file(place->value);
    write_count(reading, place, FILE_BYTES, bytes);
}

void measure_value(FeatureReading *reading, Place *place) {
    if (place->origin == PARAMETER) write_feature(reading, place, TYPE, place->type_number);
    switch (place->kind) {
    case INTEGER:
    case TRUTH:
    case FLOATING: measure_number(reading, place); break;
    case SEQUENCE: measure_sequence(reading, place); break;
    case TENSOR: measure_tensor(reading, place); break;
    case PATH: measure_file(reading, place); break;
    case OTHER:
    case OBJECT:
    case NAMED: break;
    default:
        write_count(reading, place, LENGTH, length_of(place->kind, place->value));
        write_count(reading, place, BYTES, bytes_of(place->kind, place->value));
        if (place->kind == TEXT && place->names_file) measure_file(reading, place);
    }
}

void measure_difference(FeatureReading *reading, Difference *difference) {
    const Place *places = reading->program->places;
    const Place *lower = &places[difference->lower], *upper = &places[difference->upper];
    if (!lower->is_numeric || !upper->is_numeric) return;
    if (difference->number == NOT_NUMBERED) {
        int may = may_define(reading->program, MAX_FEATURES);
        difference->number = may ? define(reading, upper->label, "-", lower->label) : REFUSED;
    }
    double value = upper->number - lower->number;
    if (difference->number == REFUSED || !isfinite(value)) return;
    reading->sink->write(reading->sink->context, difference->number, value);
}
