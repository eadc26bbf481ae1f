/* An array whose items never move, so that pointers to them stay valid.
 *
 * Ownership: the items lie in the arena, and live as long as it. Threads: one at a time. Cost: grid_at takes about 1
 * ns.
 */
#ifndef PERFLAW_GRID_H
#define PERFLAW_GRID_H

#include "arena.h"

enum { GRID_FIRST = 64, GRID_FIRST_BITS = 6, GRID_CHUNKS = 26 };

/* Chunk k holds 64 << k items. */
typedef struct Grid {
    void *chunks[GRID_CHUNKS];
    uint32_t count, item_size;
} Grid;

static inline unsigned grid_chunk(uint32_t index) {
    return 63u - GRID_FIRST_BITS - (unsigned)__builtin_clzll((uint64_t)index + GRID_FIRST);
}

/* The item at an index below count. */
static inline void *grid_at(const Grid *grid, uint32_t index) {
    unsigned chunk = grid_chunk(index);
    uint64_t within = (uint64_t)index + GRID_FIRST - ((uint64_t)GRID_FIRST << chunk);
    return (char *)grid->chunks[chunk] + within * grid->item_size;
}

/* The item at any index, zero if it is new; NULL if the arena is full. count becomes at least index + 1. */
void *grid_ensure(Arena *arena, Grid *grid, uint32_t index);

#endif
