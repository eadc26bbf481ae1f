/* Memory of a tree: blocks out of one reserved range of addresses, which the kernel fills with zero pages as they are
 * touched.
 *
 * Ownership: the caller owns the Arena. Blocks belong to the arena, and all go with arena_destroy. Threads: one at a
 * time. Cost: an allocation takes about 5 ns; a block that is used again is zeroed first.
 */
#ifndef PERFLAW_ARENA_H
#define PERFLAW_ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { ARENA_CLASSES = 160 };

typedef struct Arena {
    char *base;
    uint64_t used, size;
    int full; /* whether a block was refused */
    void *free[ARENA_CLASSES]; /* lists of free blocks by size */
} Arena;

/* Reserve up to `limit` bytes, or less if the system refuses that much. 0 or errno. */
int arena_create(Arena *arena, uint64_t limit);
void arena_destroy(Arena *arena);
/* Forget all blocks and give their memory back; the range stays reserved. */
void arena_clear(Arena *arena);

/* A zeroed block, aligned to 16 bytes. If there is no room it is NULL, and the arena is full. */
void *arena_alloc(Arena *arena, uint64_t size);
/* Give back a block of this size. NULL is allowed. */
void arena_free(Arena *arena, void *block, uint64_t size);
/* Replace a block by a larger one with the same content. 0 if there is no room; nothing has changed then. */
int arena_enlarge(Arena *arena, void **block, uint64_t size, uint64_t larger);

/* A block as a number of 32 bits for a Table, and back. No block has number 0. */
static inline uint32_t arena_number(const Arena *arena, const void *block) {
    return (uint32_t)(((uint64_t)((const char *)block - arena->base)) / 16);
}
static inline void *arena_block(const Arena *arena, uint32_t number) { return arena->base + (uint64_t)number * 16; }

#endif
