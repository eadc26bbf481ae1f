#include "calltree.h"

#include "nodes.h"
#include "runner.h"

static void play(Arena *arena, const Event *events, int count) {
    for (int at = 0; at < count; at++) calltree_feed(arena, calltree_thread(arena, 1), &events[at]);
}
#define PLAY(arena, ...) play(arena, (Event[])__VA_ARGS__, sizeof((Event[])__VA_ARGS__) / sizeof(Event))

static void dead_frames_are_closed_without_a_sample(Tally *tally) {
    Arena arena = fresh(tally, 1 << 24);
    PLAY(&arena, {{0, 1, 1, 0, -1, EVENT_ENTER}, {5, 2, 2, 0, -1, EVENT_ENTER}, {9, 1, 1, -1, -1, EVENT_EXIT}});
    CHECK(tally, node_at(&arena, 1)->n == 1 && node_at(&arena, 1)->open == 0);
    CHECK(tally, node_at(&arena, 2)->n == 0 && node_at(&arena, 2)->open == 1);
    arena_forget(&arena);
}

static void recursion_folds_at_the_third_repetition(Tally *tally) {
    Arena arena = fresh(tally, 1 << 24);
    Node *first = nodes_child(&arena, node_at(&arena, ROOT), 7, 1), *second = nodes_child(&arena, first, 7, 1);
    CHECK(tally, first != second);
    CHECK(tally, nodes_child(&arena, second, 7, 1) == first);
    CHECK(tally, nodes_child(&arena, second, 8, 1) != first);
    arena_forget(&arena);
}

static void waiting_lies_outside_the_cost(Tally *tally) {
    Arena arena = fresh(tally, 1 << 24);
    PLAY(&arena, {{0, 1, 1, 0, -1, EVENT_ENTER},
                  {0, 2, 2, 0, -1, EVENT_ENTER},
                  {3, 2, 2, -1, -1, EVENT_YIELD},
                  {10, 2, 2, 0, -1, EVENT_RESUME},
                  {14, 2, 2, -1, -1, EVENT_EXIT},
                  {20, 1, 1, -1, -1, EVENT_EXIT}});
    const Waits *waits = arena_at(&arena, node_at(&arena, 2)->waits);
    CHECK(tally, node_at(&arena, 2)->sum_x == 7 && waits->n == 1 && waits->sum_w == 7);
    CHECK(tally, node_at(&arena, 1)->sum_x == 20 && node_at(&arena, 1)->local_xx == 13 * 13);
    arena_forget(&arena);
}

static void nonsense_is_counted_and_does_no_harm(Tally *tally) {
    Arena arena = fresh(tally, 1 << 24);
    PLAY(&arena, {{INT64_MAX, 1, INT32_MIN, 0, -1, EVENT_ENTER},
                  {INT64_MAX, 1, 0, 0, -1, EVENT_RESUME},
                  {INT64_MIN, 1, 1, 0, INT32_MIN, EVENT_ENTER},
                  {INT64_MAX, 1, 1, 0, -1, EVENT_EXIT},
                  {0, 9, 1, 0, -1, EVENT_YIELD},
                  {0, 9, 1, 0, -1, 77}});
    CHECK(tally, arena.head->tree.lost == 2 && arena.head->tree.calls == 1);
    arena_forget(&arena);
}

/* Ten thousand rounds of calls, generators and deaths over the same functions take no more room than one hundred. */
static void memory_is_bounded(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    uint64_t early = 0;
    for (int64_t turn = 0; turn < 10000; turn++) {
        int64_t now = turn * 10, frame = turn * 4 + 1;
        PLAY(&arena, {{now, frame, 1, 0, -1, EVENT_ENTER},
                      {now, frame + 1, 2, 0, -1, EVENT_ENTER},
                      {now, frame + 2, 3, 0, -1, EVENT_ENTER},
                      {now + 1, frame + 2, 3, 0, -1, EVENT_YIELD},
                      {now + 2, frame + 2, 3, 1, -1, EVENT_RESUME},
                      {now + 4, frame, 1, 0, -1, EVENT_EXIT}});
        if (turn == 100) early = arena.head->used;
    }
    CHECK(tally, arena.head->used - early < 1 << 14);
    arena_forget(&arena);
}

static void open_ones_are_counted(Tally *tally) {
    Arena arena = fresh(tally, 1 << 24);
    PLAY(&arena, {{0, 1, 1, 0, -1, EVENT_ENTER}, {5, 2, 2, 0, -1, EVENT_ENTER}, {9, 2, 2, -1, -1, EVENT_YIELD}});
    calltree_finish(&arena);
    CHECK(tally, node_at(&arena, 1)->open == 1 && node_at(&arena, 2)->open == 1);
    calltree_finish(&arena);
    CHECK(tally, node_at(&arena, 1)->open == 1 && node_at(&arena, 2)->open == 1);
    arena_forget(&arena);
}

void test_calltree(Tally *tally) {
    dead_frames_are_closed_without_a_sample(tally);
    recursion_folds_at_the_third_repetition(tally);
    waiting_lies_outside_the_cost(tally);
    nonsense_is_counted_and_does_no_harm(tally);
    memory_is_bounded(tally);
    open_ones_are_counted(tally);
}
