/* Sums over batches of 1, 2, 4, ... consecutive numbers, which tell the autocorrelation that a histogram loses. Level k
 * divides the numbers, in their order, into batches of 2^k; an unfinished batch is left out.
 *
 * Ownership: levels lie in the arena; zeroed Batches are empty. Threads: one at a time. Cost: a number takes two levels
 * on average, 2 ns each.
 */
#ifndef PERFLAW_BATCHES_H
#define PERFLAW_BATCHES_H

#include "core/base/arena.h"
#include "core/base/exact.h"

enum { BATCH_LEVELS = 20 };

typedef struct BatchLevel {
    Sum squares;      /* sum of the squared sums of the complete batches */
    uint64_t waiting; /* sum of a batch that waits for the other half of its batch on the next level */
} BatchLevel;
typedef struct Batches {
    uint64_t n, sum;
    BatchLevel *levels;
    uint32_t capacity, unused;
} Batches;

/* The complete batches of a level: their number, the sum of their sums B, and of B^2. */
typedef struct BatchSums {
    uint64_t batches, sum;
    Sum squares;
} BatchSums;

/* Make room for more levels. 0 if the arena is full. */
int batches_grow(Arena *arena, Batches *batches);
/* Add a number below 2^17. Each set bit of n says that a batch of its level waits for its other half. The number
 * completes a batch of level 0, and together with each batch that waited one of the level above, just as adding 1 to
 * n carries. */
static inline void batches_add(Arena *arena, Batches *batches, uint32_t number) {
    uint32_t last = (uint32_t)__builtin_ctzll(~batches->n);
    if (last > BATCH_LEVELS) last = BATCH_LEVELS;
    if (last >= batches->capacity && last < BATCH_LEVELS && !batches_grow(arena, batches)) return;
    BatchLevel *level = batches->levels;
    uint64_t sum = number;
    for (uint32_t left = last; left; left--, level++) {
        level->squares += (Sum)sum * sum;
        sum += level->waiting;
    }
    if (last < BATCH_LEVELS) {
        level->squares += (Sum)sum * sum;
        level->waiting = sum;
    }
    batches->n++;
    batches->sum += number;
}
/* The number of levels that have a complete batch. */
uint32_t batches_count(const Batches *batches);
/* Write the sums of the first `count` levels. */
void batches_write(const Batches *batches, BatchSums *to, uint32_t count);
/* Forget the numbers and keep the memory. */
void batches_clear(Batches *batches);
/* Give the memory back. */
void batches_free(Arena *arena, Batches *batches);
/* Replace the numbers of `to` by those of `from`. 0 if the arena is full. */
int batches_copy(Arena *arena, Batches *to, const Batches *from);

#endif
