#include "core/library/calltree.h"

#include "core/tree/lanes.h"
#include "core/tree/nodes.h"
#include "runner.h"

static void dead_frames_are_closed_without_a_sample(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source, {{0, 1, 1, 0, -1, EVENT_ENTER}, {5, 2, 2, 0, -1, EVENT_ENTER}, {9, 1, 1, -1, -1, EVENT_EXIT}});
    CHECK(tally, node_at(tree, 1)->n == 1 && node_at(tree, 1)->open == 0);
    CHECK(tally, node_at(tree, 2)->n == 0 && node_at(tree, 2)->open == 1);
    CHECK(tally, node_at(tree, 1)->events_x == 2);
    done(tree);
}

static void recursion_folds_at_the_third_repetition(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    Node *first = nodes_child(tree, node_at(tree, ROOT), 7, 1), *second = nodes_child(tree, first, 7, 1);
    CHECK(tally, first != second);
    CHECK(tally, nodes_child(tree, second, 7, 1) == first);
    CHECK(tally, nodes_child(tree, second, 8, 1) != first);
    done(tree);
}

static void contexts_are_bounded(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    tree->limits.nodes = 3;
    Node *root = node_at(tree, ROOT), *kept = nodes_child(tree, root, 1, 1);
    nodes_child(tree, root, 2, 1);
    Node *elsewhere = nodes_child(tree, kept, 1, 2);
    CHECK(tally, elsewhere->site == ELSEWHERE && elsewhere->parent == ROOT && elsewhere->depth == 1);
    CHECK(tally, nodes_child(tree, root, 9, 2) == elsewhere && nodes_child(tree, root, 1, 1) == kept);
    CHECK(tally, tree->nodes.count == 4);
    done(tree);
}

static void waiting_lies_outside_the_cost(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source,
         {{0, 1, 1, 0, -1, EVENT_ENTER},
          {0, 2, 2, 0, -1, EVENT_ENTER},
          {3, 2, 2, -1, -1, EVENT_YIELD},
          {10, 2, 2, 0, -1, EVENT_RESUME},
          {14, 2, 2, -1, -1, EVENT_EXIT},
          {20, 1, 1, -1, -1, EVENT_EXIT}});
    const Waits *waits = node_at(tree, 2)->waits;
    CHECK(tally, node_at(tree, 2)->time_x == 7 && waits->n == 1 && waits->sum_w == 7);
    CHECK(tally, node_at(tree, 1)->time_x == 20 && node_at(tree, 1)->local.time == 13 * 13);
    done(tree);
}

static void time_off_the_cpu_is_a_difference_to_time(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source,
         {{0, 1, 1, 0, -1, EVENT_ENTER}, {9, 1, 1, 0, -1, EVENT_EXIT}, {10, 1, 1, 0, -1, EVENT_ENTER},
          {4, 0, METRIC_CPU, 0, -1, EVENT_CHANGE}, {4, 0, METRIC_EVENTS, 0, -1, EVENT_CHANGE},
          {4, 0, METRIC_MORE, 0, -1, EVENT_CHANGE}, {20, 1, 1, 0, -1, EVENT_EXIT}});
    const Node *node = node_at(tree, 1);
    const NodeLane *lane = lane_find(node->lanes, METRIC_CPU);
    CHECK(tally, lane && lane->n == 1 && lane->cost.least == 6 && lane->x == widen(-4) && lane->xx == widen(36 - 100));
    CHECK(tally, node->time.most == 9 && lane->time.most == 10);
    CHECK(tally, !lane->lane.next);
    done(tree);
}

static void nonsense_is_counted_and_does_no_harm(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source,
         {{INT64_MAX, 1, INT32_MIN, 0, -1, EVENT_ENTER},
          {INT64_MAX, 1, MAX_CODE, 0, -1, EVENT_RESUME},
          {INT64_MIN, 1, 1, 0, INT32_MIN, EVENT_ENTER},
          {INT64_MAX, 1, 1, 0, -1, EVENT_EXIT},
          {0, 9, 1, 0, -1, EVENT_YIELD},
          {0, 9, 0, 0, -1, EVENT_ENTER}, /* calibration, not nonsense */
          {0, 9, 1, 0, -1, 77}});
    CHECK(tally, tree->lost == 2 && tree->calls == 1);
    done(tree);
}

/* Ten thousand rounds of calls, generators and deaths over the same functions take no more room than one hundred. */
static void memory_is_bounded(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    EventSource source = {0};
    uint64_t early = 0;
    for (int64_t turn = 0; turn < 10000; turn++) {
        int64_t now = turn * 10, frame = turn * 4 + 1;
        PLAY(tree, &source,
             {{now, frame, 1, 0, -1, EVENT_ENTER},
              {now, frame + 1, 2, 0, -1, EVENT_ENTER},
              {now, frame + 2, 3, 0, -1, EVENT_ENTER},
              {1, 0, 1, 0, -1, EVENT_CHANGE},
              {now + 1, frame + 2, 3, 0, -1, EVENT_YIELD},
              {now + 2, frame + 2, 3, 1, -1, EVENT_RESUME},
              {now + 4, frame, 1, 0, -1, EVENT_EXIT}});
        if (turn == 100) early = tree->arena.used;
    }
    CHECK(tally, tree->arena.used - early < 1 << 15);
    done(tree);
}

void test_calltree(Tally *tally) {
    dead_frames_are_closed_without_a_sample(tally);
    recursion_folds_at_the_third_repetition(tally);
    contexts_are_bounded(tally);
    waiting_lies_outside_the_cost(tally);
    time_off_the_cpu_is_a_difference_to_time(tally);
    nonsense_is_counted_and_does_no_harm(tally);
    memory_is_bounded(tally);
}
