/* Memory of a tree: blocks out of one reserved range, which the kernel fills with zero pages as they are touched.
 *
 * Ownership: the caller owns the Arena; blocks belong to it until arena_free, and all go with arena_forget.
 * Threads: one at a time. Cost: allocation about 5 ns; a block that is used again is zeroed first.
 */
#ifndef PERFLAW_ARENA_H
#define PERFLAW_ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { ARENA_CLASSES = 160 };

typedef struct Arena {
    char *base;
    uint64_t used, size;
    int full; /* a block was refused */
    void *free[ARENA_CLASSES];
} Arena;

/* Reserve up to limit bytes, less where the system refuses as much. 0 or errno. */
int arena_create(Arena *arena, uint64_t limit);
void arena_forget(Arena *arena);

/* A zeroed block of 16-byte alignment; NULL if there is no more, which `full` then says. */
void *arena_alloc(Arena *arena, uint64_t size);
/* Give back a block of this size. NULL is allowed. */
void arena_free(Arena *arena, void *block, uint64_t size);
/* Replace a block by a larger one of the same content. 0 if there is no more, and nothing has changed. */
int arena_enlarge(Arena *arena, void **block, uint64_t size, uint64_t larger);

/* A block as a number for a Table, which holds 32 bits. */
static inline uint32_t arena_number(const Arena *arena, const void *block) {
    return (uint32_t)(((uint64_t)((const char *)block - arena->base)) / 16);
}
static inline void *arena_block(const Arena *arena, uint32_t number) { return arena->base + (uint64_t)number * 16; }

#endif
