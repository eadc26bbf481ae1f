/* Writes what is measured of one value: its features by the kind of its type.
 *
 * Ownership: features.h. Threads: the caller holds the GIL. Cost: 10 ns a feature. */
#ifndef PERFLAW_FEATURES_MEASURE_H
#define PERFLAW_FEATURES_MEASURE_H

#include "program.h"

void measure_value(FeatureReading *reading, Place *place);
void measure_difference(FeatureReading *reading, Difference *difference);

#endif
