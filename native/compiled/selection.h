/* Which functions are recorded, where the person selected some. Names are the recorder's matter: when code of a file is
 * first met, the recorder is asked what is selected there, and it answers with a file of places.
 *
 *     | Selection | Place 0 | Place 1 | ...    sorted by offset
 *
 * Ownership: answers stay mapped until the recording is forgotten. Threads: one at a time, under the lock of
 * functions.c. Cost: some milliseconds per file, and a binary search per function and thread. */
#ifndef PERFLAW_COMPILED_SELECTION_H
#define PERFLAW_COMPILED_SELECTION_H

#include <stdint.h>

#include "definitions.h"

enum { UNSELECTED, SELECTED, OBSERVED };

/* Whether a function is to be recorded, and whether each of its invocations is an observation. *size is set to the size of its
 * code if that is known. If the recorder gives no answer, the recording stops. */
int selection_find(const void *function, const LoadedPlace *loaded, uint32_t *size);
/* Whether no function that is selected was inlined into another one of this file. */
int selection_is_apart(const LoadedPlace *loaded);
/* Forget all answers. */
void selection_forget(void);

#endif
