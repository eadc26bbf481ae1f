/* Names of variables: their characters, and which of them are counterparts.
 *
 * Ownership: none. Threads: the caller holds the GIL. Cost: one pass over the characters. */
#ifndef PERFLAW_FEATURES_NAMES_H
#define PERFLAW_FEATURES_NAMES_H

#include "program.h"

/* Write an exact str as UTF-8, which ends in a zero byte. Gives its length; -1 if there is no room, or if it is no
 * str or one that cannot be a name. */
Py_ssize_t utf8_of(PyObject *text, char *buffer, size_t room);
/* Whether this is an identifier short enough to be part of a feature's name. */
int is_plain_name(PyObject *name);
/* The first word of a name that stands for a bound. */
BoundWord bound_word_of(const char *name);
/* Whether the names differ only in words for the lower and the upper bound. */
int are_counterparts(const Place *lower, const Place *upper);

#endif
