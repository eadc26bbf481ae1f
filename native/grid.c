#include "grid.h"

#include <string.h>

static int hold(Arena *arena, Grid *grid, uint32_t index) {
    unsigned chunk = grid_chunk(index);
    if (chunk >= GRID_CHUNKS) return 0;
    if (!grid->chunks[chunk]) grid->chunks[chunk] = arena_alloc(arena, ((uint64_t)GRID_FIRST << chunk) * grid->item);
    return grid->chunks[chunk] != 0;
}

void *grid_reach(Arena *arena, Grid *grid, uint32_t index) {
    if (!hold(arena, grid, index)) return NULL;
    if (grid->count <= index) {
        /* Chunks between are wanted too: readers walk every index below count. */
        for (unsigned chunk = 0; chunk < grid_chunk(index); chunk++)
            if (!hold(arena, grid, (uint32_t)((GRID_FIRST << chunk) - GRID_FIRST))) return NULL;
        arena_publish();
        grid->count = index + 1;
    }
    return grid_at(arena, grid, index);
}

void *grid_next(Arena *arena, Grid *grid) {
    return hold(arena, grid, grid->count) ? grid_at(arena, grid, grid->count) : NULL;
}

static uint64_t row_bytes(uint32_t capacity, uint32_t size) { return sizeof(Row) + (uint64_t)capacity * size; }

/* Readers see the old row or the new one: the offset is stored when the copy is complete. */
static int row_grow(Arena *arena, Offset *row, uint32_t size) {
    uint32_t count = row_count(arena, *row), capacity = count ? count * 2 : 2;
    Offset larger = arena_alloc(arena, row_bytes(capacity, size)), old = *row;
    if (!larger) return 0;
    if (old) memcpy(row_items(arena, larger), row_items(arena, old), (uint64_t)count * size);
    *(Row *)arena_at(arena, larger) = (Row){.count = count, .capacity = capacity};
    arena_publish();
    *row = larger;
    arena_publish();
    if (old) arena_free(arena, old, row_bytes(count, size));
    return 1;
}

int64_t row_push(Arena *arena, Offset *row, const void *item, uint32_t size) {
    Row *head = *row ? arena_at(arena, *row) : NULL;
    if ((!head || head->count == head->capacity) && !row_grow(arena, row, size)) return -1;
    head = arena_at(arena, *row);
    memcpy((char *)row_items(arena, *row) + (uint64_t)head->count * size, item, size);
    arena_publish();
    return head->count++;
}
