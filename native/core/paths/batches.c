#include "batches.h"

#include <string.h>

enum { FIRST_CAPACITY = 4 };

int batches_grow(Arena *arena, Batches *batches) {
    uint64_t old = batches->capacity, new = old ? old * 2 : FIRST_CAPACITY;
    if (new > BATCH_LEVELS) new = BATCH_LEVELS;
    if (!arena_enlarge(arena, (void **)&batches->levels, old * sizeof(BatchLevel), new * sizeof(BatchLevel))) return 0;
    batches->capacity = (uint32_t)new;
    return 1;
}

uint32_t batches_count(const Batches *batches) {
    uint32_t count = batches->n ? 64u - (uint32_t)__builtin_clzll(batches->n) : 0;
    return count < BATCH_LEVELS ? count : BATCH_LEVELS;
}

void batches_write(const Batches *batches, BatchSums *to, uint32_t count) {
    uint64_t sum = batches->sum;
    for (uint32_t level = 0; level < count; level++) {
        to[level] = (BatchSums){batches->n >> level, sum, batches->levels[level].squares};
        if (batches->n >> level & 1) sum -= batches->levels[level].waiting; /* it is no half of a batch on the next level */
    }
}

void batches_clear(Batches *batches) {
    if (batches->levels) memset(batches->levels, 0, batches->capacity * sizeof(BatchLevel));
    batches->n = batches->sum = 0;
}

void batches_free(Arena *arena, Batches *batches) {
    arena_free(arena, batches->levels, batches->capacity * sizeof(BatchLevel));
    *batches = (Batches){0};
}

int batches_copy(Arena *arena, Batches *to, const Batches *from) {
    batches_free(arena, to);
    BatchLevel *levels = arena_alloc(arena, from->capacity * sizeof(BatchLevel));
    if (!levels) return 0;
    if (from->levels) memcpy(levels, from->levels, from->capacity * sizeof(BatchLevel));
    *to = *from;
    to->levels = levels;
    return 1;
}
