/* Sums over batches of 1, 2, 4, ... consecutive numbers, which carry the autocorrelation that a histogram loses.
 * Level k divides the numbers, in their order, into batches of 2^k; an unfinished one is left out.
 *
 * Ownership: levels lie in the arena. Threads: one at a time. Cost: two levels a number in the mean, 2 ns each.
 */
#ifndef PERFLAW_BATCHES_H
#define PERFLAW_BATCHES_H

#include "arena.h"
#include "exact.h"

enum { BATCH_LEVELS = 20 };

typedef struct Level {
    Sum squares;   /* of the complete batches' sums */
    uint64_t rest; /* sum of a batch that waits for the other half of its batch of the next level */
} Level;
typedef struct Batches {
    uint64_t n, sum;
    Level *levels;
    uint32_t capacity, unused;
} Batches;

/* The complete batches of a level: how many, the sum of their sums B, and of B^2. */
typedef struct Batched {
    uint64_t batches, sum;
    Sum squares;
} Batched;

/* Room for more levels. 0 if the arena is full. */
int batches_enlarge(Arena *arena, Batches *batches);
/* Add a number below 2^17. A bit of n says that a batch of its level waits for its other half: the number ends one batch
 * of level 0, and with each that waited one of the level above, as adding 1 to n carries. */
static inline void batches_add(Arena *arena, Batches *batches, uint32_t number) {
    uint32_t last = (uint32_t)__builtin_ctzll(~batches->n);
    if (last > BATCH_LEVELS) last = BATCH_LEVELS;
    if (last >= batches->capacity && last < BATCH_LEVELS && !batches_enlarge(arena, batches)) return;
    Level *level = batches->levels;
    uint64_t sum = number;
    for (uint32_t left = last; left; left--, level++) {
        level->squares += (Sum)sum * sum;
        sum += level->rest;
    }
    if (last < BATCH_LEVELS) {
        level->squares += (Sum)sum * sum;
        level->rest = sum;
    }
    batches->n++;
    batches->sum += number;
}
/* Levels that have a complete batch. */
uint32_t batches_count(const Batches *batches);
/* Write so many levels, the first ones. */
void batches_put(const Batches *batches, Batched *to, uint32_t count);
/* Forget the numbers; the memory stays. */
void batches_clear(Batches *batches);
void batches_free(Arena *arena, Batches *batches);
/* The same numbers in memory of its own, in place of what the other had. 0 if the arena is full. */
int batches_copy(Arena *arena, Batches *to, const Batches *from);

#endif
