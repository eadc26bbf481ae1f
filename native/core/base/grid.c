#include "grid.h"

void *grid_ensure(Arena *arena, Grid *grid, uint32_t index) {
    while (grid->count <= index) {
        unsigned chunk = grid_chunk(grid->count);
        if (chunk >= GRID_CHUNKS) return NULL;
        void **items = &grid->chunks[chunk];
        if (!*items) *items = arena_alloc(arena, ((uint64_t)GRID_FIRST << chunk) * grid->item_size);
        if (!*items) return NULL;
        uint64_t end = ((uint64_t)GRID_FIRST << (chunk + 1)) - GRID_FIRST;
        grid->count = index < end ? index + 1 : (uint32_t)end;
    }
    return grid_at(grid, index);
}
