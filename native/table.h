/* A hash index from three words to one, with deletion.
 *
 * Ownership: the slots lie in the arena. Threads: one at a time. Cost: about 4 ns a look-up while it fits the cache;
 * it doubles at half full.
 */
#ifndef PERFLAW_TABLE_H
#define PERFLAW_TABLE_H

#include "arena.h"

typedef struct Slot {
    uint32_t a, b, c, value; /* value 0 marks an empty slot */
} Slot;
typedef struct Table {
    Slot *slots; /* open addressing */
    uint32_t capacity, used;
} Table;

/* The value of a key, 0 if it has none. */
uint32_t table_get(const Table *table, uint32_t a, uint32_t b, uint32_t c);
/* Set the value (never 0) of a key. 0 if the arena is full. */
int table_put(Arena *arena, Table *table, uint32_t a, uint32_t b, uint32_t c, uint32_t value);
/* Forget a key and return the value it had, 0 if none. */
uint32_t table_pop(Table *table, uint32_t a, uint32_t b, uint32_t c);

#endif
