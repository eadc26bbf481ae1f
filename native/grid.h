/* Two ways to hold equal items: a grid, whose items never move, and a row, which is compact and moves as it grows.
 *
 * Ownership: the struct lies in the arena; items live as long as the arena. Threads: as the arena.
 * Cost: grid_at about 1 ns; row_push amortised constant, one copy per doubling.
 */
#ifndef PERFLAW_GRID_H
#define PERFLAW_GRID_H

#include "arena.h"

enum { GRID_FIRST = 64, GRID_FIRST_BITS = 6 };

static inline unsigned grid_chunk(uint32_t index) {
    return 63u - GRID_FIRST_BITS - (unsigned)__builtin_clzll((uint64_t)index + GRID_FIRST);
}

/* The item at an index that grid_reach has reached before. */
static inline void *grid_at(const Arena *arena, const Grid *grid, uint32_t index) {
    unsigned chunk = grid_chunk(index);
    uint64_t within = (uint64_t)index + GRID_FIRST - ((uint64_t)GRID_FIRST << chunk);
    return arena_at(arena, grid->chunks[chunk] + within * grid->item);
}

/* The item at any index, zero when new; NULL if the arena is full. count becomes at least index + 1. */
void *grid_reach(Arena *arena, Grid *grid, uint32_t index);
/* A zeroed item at count, not counted yet: fill it, then grid_publish. NULL if the arena is full. */
void *grid_next(Arena *arena, Grid *grid);
static inline void grid_publish(Grid *grid) {
    arena_publish();
    grid->count++;
}

/* The items of a row, which may be 0; its count is row_count. */
static inline void *row_items(const Arena *arena, Offset row) { return arena_at(arena, row + sizeof(Row)); }
static inline uint32_t row_count(const Arena *arena, Offset row) {
    return row ? ((Row *)arena_at(arena, row))->count : 0;
}
/* Append a copy of item; its index, or -1 if the arena is full. Moves *row. */
int64_t row_push(Arena *arena, Offset *row, const void *item, uint32_t size);

#endif
