#include "core/tree/moments.h"

#include "core/tree/descendants.h"
#include "core/tree/nodes.h"
#include "core/tree/repeats.h"
#include "runner.h"

static void buckets_are_four_to_a_power_of_two(Tally *tally) {
    const int64_t costs[] = {0, 1, 2, 4, 5, 6, 7, 8, 1000};
    const unsigned buckets[] = {0, 4, 8, 12, 13, 14, 15, 16, 43};
    for (int at = 0; at < 9; at++) CHECK(tally, log_bucket(costs[at]) == buckets[at]);
    CHECK(tally, log_bucket(INT64_MAX) == 63 * 4 + 3);
    CHECK(tally, log_bucket(INT64_MIN) / 4 < STRATA);
}

static void large_numbers_lose_nothing(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    Node *node = nodes_child(tree, node_at(tree, ROOT), 0, 1);
    int64_t big = 1000000000, histogram = 1000;
    for (int at = 0; at < 1000; at++) {
        Invocation frame = {.node = node, .time = at % 2 ? big + histogram : big - histogram, .events = 1};
        moments_add(tree, NULL, &frame, NULL);
    }
    CHECK(tally, node->n * node->time_xx - node->time_x * node->time_x == (Sum)node->n * node->n * 1000000);
    CHECK(tally, node->time.least == big - histogram && node->time.most == big + histogram);
    CHECK(tally, node->events_x == 1000 && node->events.most == 1);
    done(tree);
}

/* The sum over all pairs, those of two different parts twice. */
static Sum whole(const Node *node, int events) {
    Sum all = events ? node->local.events : node->local.time;
    for (uint32_t at = 0; at < node->pair_count; at++) {
        const Pair *pair = &node->pairs[at];
        all += (events ? pair->events : pair->time) * (pair->i == pair->j ? 1 : 2);
    }
    return all;
}

static void many_children(Tree *tree, Node *node, Invocation *frame) {
    *frame = (Invocation){.node = node, .time = 12345};
    for (int at = 0; at < 200; at++) {
        const Node *kid = nodes_child(tree, node, at, 2);
        descendants_add(&tree->arena, &frame->callees, &(Descendant){kid->number, 2, 1, at, at % 3 + 1});
        frame->time += at;
        frame->events += at % 3 + 1;
    }
    frame->events++;
    moments_add(tree, NULL, frame, NULL);
}

/* 200 children, of which 63 and LOCAL are kept: the pairs still add up to the square of the cost. */
static void pairs_add_up_beyond_the_kids_apart(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    Node *node = nodes_child(tree, node_at(tree, ROOT), 0, 1);
    Invocation frame;
    many_children(tree, node, &frame);
    CHECK(tally, whole(node, 0) == node->time_xx && whole(node, 1) == node->events_xx);
    CHECK(tally, node->pair_count == 65 * 66 / 2 - 1);
    done(tree);
}

static void pairs_add_up_beyond_the_bound(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    tree->limits.pairs = 10;
    Node *node = nodes_child(tree, node_at(tree, ROOT), 0, 1);
    Invocation frame;
    many_children(tree, node, &frame);
    CHECK(tally, whole(node, 0) == node->time_xx && whole(node, 1) == node->events_xx);
    CHECK(tally, node->pair_count == 10 && tree->pairs_left_out > 2000);
    done(tree);
}

static void links_are_bounded(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    tree->limits.links = 150;
    Node *node = nodes_child(tree, node_at(tree, ROOT), 0, 1);
    Invocation frame;
    many_children(tree, node, &frame);
    CHECK(tally, node->link_count == 150 && tree->links_left_out == 50);
    done(tree);
}

/* K and events of 1, 1, 3 and 2^33: runs end and what is too large for one is exact as well. */
static void runs_of_a_link_are_settled(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    Node *node = nodes_child(tree, node_at(tree, ROOT), 0, 1);
    const uint64_t calls[] = {1, 1, 3, 1ull << 33};
    for (int at = 0; at < 4; at++) {
        Invocation frame = {.node = node, .time = 10, .events = (int64_t)calls[at] + 1};
        descendants_add(&tree->arena, &frame.callees, &(Descendant){7, 2, calls[at], 5, (int64_t)calls[at]});
        moments_add(tree, NULL, &frame, NULL);
    }
    LinkTotals all = repeats_link_totals(node, 0);
    Sum huge = 1ull << 33;
    CHECK(tally, all.n == 4 && all.n_once == 2 && all.k == 5 + huge && all.kk == 11 + huge * huge);
    CHECK(tally, all.time_y == 20 && all.time_ky == 5 * (5 + huge) && all.events.yy == 11 + huge * huge);
    CHECK(tally, all.events.yx == 2 + 2 + 12 + huge * (huge + 1) && node->links[0].time_yx == 200);
    done(tree);
}

/* Products of times outgrow a link's 64 bits, and times its products: none is lost. */
static void long_times_of_a_link_are_exact(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    Node *node = nodes_child(tree, node_at(tree, ROOT), 0, 1);
    const int64_t longest = INT32_MAX, times[] = {longest, longest, longest, longest, longest + 1, -5, INT64_MAX, 7};
    Sum yy = 0, yx = 0;
    for (int at = 0; at < 80; at++) {
        int64_t y = times[at % 8], x = at % 8 < 4 ? longest : at % 8 < 7 ? longest + 9 : 11;
        Invocation frame = {.node = node, .time = x, .events = 2};
        descendants_add(&tree->arena, &frame.callees, &(Descendant){7, 2, 1, y, 1});
        moments_add(tree, NULL, &frame, NULL);
        yy += (Sum)((__int128)y * y);
        yx += (Sum)((__int128)y * x);
    }
    LinkTotals all = repeats_link_totals(node, 0);
    CHECK(tally, all.time_yy == yy && all.time_yx == yx);
    done(tree);
}

void test_moments(Tally *tally) {
    buckets_are_four_to_a_power_of_two(tally);
    large_numbers_lose_nothing(tally);
    pairs_add_up_beyond_the_kids_apart(tally);
    pairs_add_up_beyond_the_bound(tally);
    links_are_bounded(tally);
    runs_of_a_link_are_settled(tally);
    long_times_of_a_link_are_exact(tally);
}
