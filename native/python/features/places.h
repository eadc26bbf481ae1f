/* Places: added, labelled and freed.
 *
 * Ownership: features.h. Threads: the caller holds the GIL. Cost: an allocation for the label. */
#ifndef PERFLAW_FEATURES_PLACES_H
#define PERFLAW_FEATURES_PLACES_H

#include "program.h"

/* Append a place, which takes its own reference to the name. NULL if a bound is reached or there is no memory.
 * Places may move. */
Place *place_add(FeatureProgram *program, Origin origin, int parent, PyObject *name);
/* Free all places of a program. */
void places_free(FeatureProgram *program);

#endif
