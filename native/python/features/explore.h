/* Finds the places that are worth reading: what the parameters hold, and what globals and cells the code names.
 *
 * Ownership: features.h. Threads: the caller holds the GIL. Cost: about 2 us a call that explores. */
#ifndef PERFLAW_FEATURES_EXPLORE_H
#define PERFLAW_FEATURES_EXPLORE_H

#include "program.h"

/* Append the roots that are not there yet. */
void explore_roots(FeatureProgram *program, const CallEntry *entry);
/* Append the attributes or items of the value of a place. */
void explore_value(FeatureProgram *program, int parent, const CallEntry *entry);
/* Append the differences between numbers of this call. */
void explore_differences(FeatureProgram *program);

#endif
