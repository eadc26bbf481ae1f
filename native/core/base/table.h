/* A hash index from three words to one, with deletion.
 *
 * Ownership: the slots lie in the arena. Threads: one at a time. Cost: a look-up takes about 4 ns while the table fits
 * the cache; the table doubles when it is half full.
 */
#ifndef PERFLAW_TABLE_H
#define PERFLAW_TABLE_H

#include "arena.h"

typedef struct Slot {
    uint32_t a, b, c, value; /* value 0 marks an empty slot */
} Slot;
/* A zeroed Table is empty. */
typedef struct Table {
    Slot *slots; /* open addressing */
    uint32_t capacity, used;
} Table;

/* The value of a key, 0 if it has none. */
uint32_t table_get(const Table *table, uint32_t a, uint32_t b, uint32_t c);
/* Set the value of a key, which is never 0. 0 if the arena is full. */
int table_put(Arena *arena, Table *table, uint32_t a, uint32_t b, uint32_t c, uint32_t value);
/* Remove a key. Gives the value it had, 0 if none. */
uint32_t table_pop(Table *table, uint32_t a, uint32_t b, uint32_t c);

#endif
