/* A feature program: the places from which the features of one function are read, found during its first calls.
 *
 * The places form a forest: a root is a parameter, a global or a closure cell, and a child is an attribute of its
 * parent's value, or an item of a dictionary. Parents stand before their children, so one pass over the array reads
 * all. What a place remembers of the type that it saw last is only a cache: a value of another type is read as if it
 * were the first, so exploring and running agree.
 *
 *     features_read -> explore (may append places) -> look, measure (per place) -> differences
 *
 * Ownership: features.h. Threads: the caller holds the GIL. Cost: features.h. */
#ifndef PERFLAW_FEATURES_PROGRAM_H
#define PERFLAW_FEATURES_PROGRAM_H

#include "features.h"
#include "kinds.h"

enum {
    MAX_FEATURES = 48,        /* of a function, beyond the types, lengths and values of its parameters */
    MAX_PLACES = 48,          /* beyond the parameters */
    MAX_ATTRIBUTES = 16,      /* of one object */
    MAX_KEYS = 8,             /* of **kwargs, and of a dictionary */
    MAX_NAMED = 8,            /* globals, and as many closure cells */
    MAX_DIFFERENCES = 8,      /* such as end - begin */
    MAX_EXTENTS = 4,          /* of an array */
    MAX_FILES = 2,            /* looked up per call; each takes about 2 us */
    MAX_DEPTH = 2,            /* attributes of attributes */
    MAX_NAME_CHARACTERS = 64,
};

typedef enum Origin { PARAMETER, CLOSURE, GLOBAL, ATTRIBUTE, KEY } Origin;

typedef enum Measure {
    TYPE, VALUE, LENGTH, SUM, SIZE, BYTES, FILE_BYTES,
    EXTENT, /* and the next ones, one per dimension */
    MEASURES = EXTENT + MAX_EXTENTS
} Measure;

/* A word in a name that stands for a lower or an upper bound: end_row is the counterpart of begin_row. */
typedef struct BoundWord {
    int8_t family; /* words of one family are counterparts; 0: the name has no such word */
    int8_t is_upper;
    uint8_t start, length;
} BoundWord;

typedef struct Place {
    Origin origin;
    int16_t parent; /* index of the place whose value this is an attribute of */
    uint8_t depth, children;
    uint8_t is_in_cell, is_keywords; /* of a parameter: it lies in a cell; it is **kwargs */
    uint8_t names_file;        /* its name says that a text may be a path */
    /* its label reads like a feature of its parent: an attribute `type` of self is "self.type" */
    uint8_t clashes;
    BoundWord bound;
    Py_ssize_t index;          /* of the variable or the cell; of an attribute, where it lay last */
    PyObject *name;            /* an exact str, owned */
    char *label;               /* as in the names of features, owned */
    PyTypeObject *type;        /* of the last value, only to compare, with its tag: the type may be dead */
    unsigned tag;
    Kind kind;
    int32_t type_number;
    uint32_t epoch;            /* how often the type changed */
    uint32_t resolved_in;      /* epoch of the parent for which `offset` and `field` hold */
    Py_ssize_t offset;         /* of the slot, 0 if it is in the instance dictionary */
    Py_ssize_t field;          /* index of the field of a named tuple, else -1; as `offset`, for that epoch */
    int32_t numbers[MEASURES]; /* of the features, or NOT_NUMBERED, or REFUSED */
    PyObject *value;           /* in the call at hand; borrowed, and stale between calls */
    double number;             /* of a numeric value */
    uint8_t is_numeric;        /* whether `number` is of the call at hand */
} Place;

enum { NOT_NUMBERED = INT32_MIN, REFUSED = INT32_MIN + 1 };

/* The difference of two numbers, upper less lower bound, which is usually a size. */
typedef struct Difference {
    int16_t lower, upper; /* indices of places */
    int32_t number;
} Difference;

struct FeatureProgram {
    Place *places;
    int count, capacity, parameters;
    int difference_count, named_globals, named_cells;
    int features;     /* how many are defined that MAX_FEATURES is about */
    int exploring;    /* calls left that may append places */
    int explorations; /* calls so far that could */
    int misses;       /* objects of another type than in the call before, since the last exploration */
    Difference differences[MAX_DIFFERENCES];
};

/* The reading of one call. */
typedef struct FeatureReading {
    FeatureProgram *program;
    const CallEntry *entry;
    const FeatureSink *sink;
    int files_left; /* how many files may still be looked up */
} FeatureReading;

#endif
