/* Numbers of components, features and types in this process's definitions.
 *
 * Equal names get equal numbers: code objects of the same name, file and line are one component. A name is known by a
 * hash of 64 bits.
 *
 * Ownership: tables of the process. Threads: the caller holds the GIL. Cost: hashing the name, and a look-up. */
#ifndef PERFLAW_PYTHON_NUMBERS_H
#define PERFLAW_PYTHON_NUMBERS_H

#include "recording.h"

/* Each gives a number from 1, or 0 if there are too many or no memory. *is_new says whether it was given just now. */
int32_t number_of_component(const Function *function, int *is_new);
/* Components that have a number in this process. */
uint32_t numbers_of_components(void);
int32_t number_of_aside(const char *name, int *is_new);
int32_t number_of_feature(const Function *function, const char *name, int *is_new);
int32_t number_of_type(const char *name, size_t length, int *is_new);

/* In a forked child: forget all numbers, for its definitions begin anew. */
void numbers_forget(void);

/* FNV-1a of 64 bits over parts of a key in turn, which begins as HASH_START. */
#define HASH_START 0xcbf29ce484222325ull
static inline uint64_t hash_part(uint64_t key, const void *data, size_t length) {
    for (const unsigned char *at = data; length--; at++) key = (key ^ *at) * 0x100000001b3ull;
    return (key ^ 0xff) * 0x100000001b3ull;
}

#endif
