/* Texts by number: each different text is kept once.
 *
 * Ownership: a zeroed Names is empty; names_free gives its memory back. Threads: one at a time. Cost: some 20 ns a look-up.
 */
#ifndef PERFLAW_NAMES_H
#define PERFLAW_NAMES_H

#include "json.h"

typedef struct Names {
    char *bytes;            /* all texts, one after the other */
    uint64_t *ends;         /* where each of them ends, by number; that of 0 is 0 */
    uint32_t *slots;        /* open addressing: numbers, 0 where a slot is empty */
    uint64_t size, capacity, seed;
    uint32_t count, room, slot_count;
} Names;

/* Number of a text, from 1, in the order in which they came. 0 if there is no memory. */
uint32_t names_number(Names *names, Slice text);
/* Number of a text that is known, else 0. */
uint32_t names_find(const Names *names, Slice text);
Slice names_text(const Names *names, uint32_t number);
void names_free(Names *names);

#endif
