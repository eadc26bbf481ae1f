#include "batches.h"

#include <string.h>

enum { LEAST = 4 };

int batches_enlarge(Arena *arena, Batches *batches) {
    uint64_t old = batches->capacity, new = old ? old * 2 : LEAST;
    if (new > BATCH_LEVELS) new = BATCH_LEVELS;
    if (!arena_enlarge(arena, (void **)&batches->levels, old * sizeof(Level), new * sizeof(Level))) return 0;
    batches->capacity = (uint32_t)new;
    return 1;
}

uint32_t batches_count(const Batches *batches) {
    uint32_t count = batches->n ? 64u - (uint32_t)__builtin_clzll(batches->n) : 0;
    return count < BATCH_LEVELS ? count : BATCH_LEVELS;
}

void batches_put(const Batches *batches, Batched *to, uint32_t count) {
    uint64_t sum = batches->sum;
    for (uint32_t level = 0; level < count; level++) {
        to[level] = (Batched){batches->n >> level, sum, batches->levels[level].squares};
        if (batches->n >> level & 1) sum -= batches->levels[level].rest; /* no half of a batch of the next level */
    }
}

void batches_clear(Batches *batches) {
    if (batches->levels) memset(batches->levels, 0, batches->capacity * sizeof(Level));
    batches->n = batches->sum = 0;
}

void batches_free(Arena *arena, Batches *batches) {
    arena_free(arena, batches->levels, batches->capacity * sizeof(Level));
    *batches = (Batches){0};
}

int batches_copy(Arena *arena, Batches *to, const Batches *from) {
    batches_free(arena, to);
    Level *levels = arena_alloc(arena, from->capacity * sizeof(Level));
    if (!levels) return 0;
    if (from->levels) memcpy(levels, from->levels, from->capacity * sizeof(Level));
    *to = *from;
    to->levels = levels;
    return 1;
}
