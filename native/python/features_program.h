/* A feature program: the places from where the features of one function are read, found while its first calls ran.
 *
 * The places form a forest: a root is a parameter, a global or a closure cell, a child an attribute of what lies there.
 * Parents stand before their children, so one pass over the array reads all. What a place remembers of the type it saw
 * last is a cache and no more: a value of another type is read as if it were the first, so exploring and running agree.
 *
 *     features_read -> explore (may append places) -> look, measure (one place) -> pairs
 */
#ifndef PERFLAW_PYTHON_FEATURES_PROGRAM_H
#define PERFLAW_PYTHON_FEATURES_PROGRAM_H

#include "features.h"
#include "features_kinds.h"
#include "features_layout.h"

enum {
    MOST_FEATURES = 48,  /* of a function, beyond its parameters' types, lengths and values */
    MOST_PLACES = 48,    /* beyond its parameters */
    MOST_OF_OBJECT = 16, /* attributes of one object */
    MOST_KEYS = 8,       /* of **kwargs */
    MOST_NAMED = 8,      /* globals, and as many closure cells */
    MOST_PAIRS = 8,      /* differences such as end - begin */
    MOST_EXTENTS = 4,    /* extents of an array */
    MOST_FILES = 2,      /* looked up per call: about 2 us each */
    DEEPEST = 2,         /* attributes of attributes */
    LONGEST_NAME = 64,   /* characters */
};

typedef enum Origin { PARAMETER, CLOSURE, GLOBAL, ATTRIBUTE, KEY } Origin;

typedef enum Measure {
    TYPE, VALUE, LENGTH, SUM, SIZE, BYTES, FILE_BYTES,
    EXTENT, /* and the next ones, one a dimension */
    MEASURES = EXTENT + MOST_EXTENTS
} Measure;

/* The part of a name that has a counterpart: end_row of begin_row. */
typedef struct Edge {
    int8_t family; /* names of one family are counterparts; 0: there is none */
    int8_t high;
    uint8_t start, length;
} Edge;

typedef struct Place {
    Origin origin;
    int16_t parent; /* place of the object that this is an attribute of */
    uint8_t depth, children;
    uint8_t in_cell, keywords; /* of a parameter: lies in a cell, is **kwargs */
    uint8_t names_file;        /* a text of such a name may be a path */
    uint8_t clashes;           /* self.type, were it an attribute, reads as the type of self */
    Edge edge;
    Py_ssize_t index;          /* of the variable or the cell; of an attribute where it lay last */
    PyObject *name;            /* an exact str: owned */
    char *label;               /* as in the names of features: owned */
    PyTypeObject *type;        /* of the value seen last, to compare only, with its tag: it may be dead */
    unsigned tag;
    Kind kind;
    int32_t type_number;
    uint32_t epoch;            /* how many types it saw, one after another */
    uint32_t resolved_in;      /* epoch of the parent for which `offset` holds */
    Py_ssize_t offset;         /* of the slot, 0 if in the instance dictionary */
    int32_t numbers[MEASURES]; /* of the features, or UNASKED, or REFUSED */
    PyObject *value;           /* of the call at hand: borrowed, and stale between calls */
    double number;             /* of a numeric value */
    uint8_t is_numeric;        /* whether `number` is of the call at hand */
} Place;

enum { UNASKED = INT32_MIN, REFUSED = INT32_MIN + 1 };

/* The difference of two numbers: a size as a rule. */
typedef struct Pair {
    int16_t low, high;
    int32_t number;
} Pair;

struct Program {
    Place *places;
    int count, room, parameters;
    int pairs, named_globals, named_cells;
    int features;     /* how many were defined that MOST_FEATURES is about */
    int exploring;    /* calls that may still append places */
    int explorations; /* calls that could */
    int misses;       /* objects of another type than the call before, since the last of them */
    Pair pair[MOST_PAIRS];
};

typedef struct Reading {
    Program *program;
    const Entry *entry;
    const Sink *sink;
    int files; /* how many may still be looked up */
} Reading;

/* features_explore.c: the roots, once; the attributes of a place's value; the pairs among the numbers of this call. */
void explore_roots(Program *program, const Entry *entry);
void explore_value(Program *program, int parent, const Entry *entry);
void explore_pairs(Program *program);

/* features_place.c: append (0 if memory or a bound is reached; takes its own reference), forget. */
Place *place_add(Program *program, Origin origin, int parent, PyObject *name);
void places_free(Program *program);

/* features_measure.c: put what is measured of the value of the place. */
void measure(Reading *reading, Place *place);
void measure_pair(Reading *reading, Pair *pair);

/* features_names.c: UTF-8 of an exact str into `into`; its length, -1 if it has no room or no such name can be. */
Py_ssize_t utf8_of(PyObject *text, char *into, size_t room);
/* An identifier short enough to be part of a feature's name. */
int is_plain_name(PyObject *name);
Edge edge_of(const char *name);
int are_counterparts(const Place *low, const Place *high);

/* features_files.c: bytes of the regular file that a path names; -1 if it names none. */
Py_ssize_t file_bytes(PyObject *text);
Py_ssize_t path_bytes(PyObject *path);

#endif
