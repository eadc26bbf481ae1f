#include "reservoir.h"

#include "runner.h"

static Bottom *uniform_of(const Arena *arena, Offset place) {
    return &((Reservoir *)arena_at(arena, place))->uniform;
}

static void the_scramble_is_the_twins(Tally *tally) {
    CHECK(tally, scramble(0) == 0);
    CHECK(tally, scramble(1) == 0xe220a8397b1dcdafull >> 2); /* SplitMix64's first output of seed 0 */
}

/* Keys 9999 ... 0 in a scattered order: the 512 smallest remain, and memory stays what they need. */
static void the_smallest_keys_are_kept(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    Offset place = 0;
    uint64_t half = 0;
    for (uint64_t at = 0; at < 40000; at++) {
        Invocation done = {.key = (int32_t)(at * 7919 % 10000), .x = (int64_t)at};
        reservoir_offer(&arena, &place, at + 1, &done);
        if (at == 20000) half = arena.head->used;
    }
    const Bottom *uniform = uniform_of(&arena, place);
    const Ticket *heap = arena_at(&arena, uniform->heap);
    int right = 1;
    for (uint32_t at = 0; at < uniform->kept; at++) right &= heap[at].key < 128;
    CHECK(tally, uniform->kept == UNIFORM && right && uniform->bound == 127);
    CHECK(tally, arena.head->used - half < 1 << 15);
    arena_forget(&arena);
}

static void calls_not_drawn_are_in_their_stratum_only(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    Offset place = 0;
    for (uint64_t at = 1; at <= 100; at++) reservoir_offer(&arena, &place, at, &(Invocation){.key = -1, .x = 5});
    const Reservoir *reservoir = arena_at(&arena, place);
    const Bottom *stratum = arena_at(&arena, reservoir->strata[3]);
    CHECK(tally, reservoir->uniform.kept == 0);
    CHECK(tally, stratum->kept == PER_STRATUM && stratum->offered == 100);
    arena_forget(&arena);
}

void test_reservoir(Tally *tally) {
    the_scramble_is_the_twins(tally);
    the_smallest_keys_are_kept(tally);
    calls_not_drawn_are_in_their_stratum_only(tally);
}
