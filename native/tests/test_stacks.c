#include "core/tree/stacks.h"

#include "core/library/calltree.h"
#include "core/tree/nodes.h"
#include "runner.h"

static void a_stack_that_is_switched_out_costs_nothing(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source,
         {{0, 1, 1, 0, -1, EVENT_ENTER}, {10, 7, 0, 0, -1, EVENT_SWITCH}, {11, 2, 2, 0, -1, EVENT_ENTER},
          {31, 2, 2, 0, -1, EVENT_EXIT}, {40, 0, 0, 0, -1, EVENT_SWITCH}, {45, 1, 1, 0, -1, EVENT_EXIT}});
    CHECK(tally, node_at(tree, 1)->time_x == 15 && node_at(tree, 1)->events_x == 1);
    CHECK(tally, node_at(tree, 2)->time_x == 20 && node_at(tree, 2)->parent == ROOT);
    done(tree);
}

/* A hundred thousand greenlets one after the other: an empty stack is used again. */
static void finished_stacks_take_no_room(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 22);
    EventSource source = {0};
    for (int64_t serial = 1; serial < 100000; serial++)
        PLAY(tree, &source, {{serial, serial, 0, 0, -1, EVENT_SWITCH}, {serial, 1, 1, 0, -1, EVENT_ENTER},
                             {serial, 1, 1, 0, -1, EVENT_EXIT}});
    CHECK(tally, !tree->arena.full && node_at(tree, 1)->n == 99999);
    done(tree);
}

static void a_new_thread_ends_the_one_before(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source,
         {{0, 1, 1, 0, -1, EVENT_ENTER}, {1, 5, 0, 0, -1, EVENT_SWITCH}, {2, 2, 2, 0, -1, EVENT_ENTER},
          {9, 0, 0, 0, -1, EVENT_THREAD}, {9, 1, 1, 0, -1, EVENT_EXIT}});
    CHECK(tally, node_at(tree, 1)->open == 1 && node_at(tree, 2)->open == 1 && tree->calls == 0);
    done(tree);
}

static void open_ones_are_counted_once(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source, {{0, 1, 1, 0, -1, EVENT_ENTER}, {5, 2, 2, 0, -1, EVENT_ENTER}, {9, 2, 2, -1, -1, EVENT_YIELD}});
    for (int turn = 0; turn < 2; turn++) {
        calltree_end(tree, &source);
        calltree_finish(tree);
        CHECK(tally, node_at(tree, 1)->open == 1 && node_at(tree, 2)->open == 1);
    }
    done(tree);
}

void test_stacks(Tally *tally) {
    a_stack_that_is_switched_out_costs_nothing(tally);
    finished_stacks_take_no_room(tally);
    a_new_thread_ends_the_one_before(tally);
    open_ones_are_counted_once(tally);
}
