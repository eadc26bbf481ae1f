#include "moments.h"

#include <string.h>

#include "bag.h"
#include "dump.h"
#include "nodes.h"
#include "runner.h"

static void buckets_are_four_to_a_power_of_two(Tally *tally) {
    const int64_t costs[] = {0, 1, 2, 4, 5, 6, 7, 8, 1000};
    const unsigned buckets[] = {0, 4, 8, 12, 13, 14, 15, 16, 43};
    for (int at = 0; at < 9; at++) CHECK(tally, log_bucket(costs[at]) == buckets[at]);
    CHECK(tally, log_bucket(INT64_MAX) == 63 * 4 + 3);
    CHECK(tally, log_bucket(INT64_MIN) < LOG_BUCKETS);
}

static void large_numbers_lose_nothing(Tally *tally) {
    Arena arena = fresh(tally, 1 << 24);
    Node *node = nodes_child(&arena, node_at(&arena, ROOT), 0, 1);
    int64_t big = 1000000000, spread = 1000;
    for (int at = 0; at < 1000; at++) moments_add(&arena, node, at % 2 ? big + spread : big - spread, NULL, NULL);
    CHECK(tally, node->n * node->sum_xx - node->sum_x * node->sum_x == (Sum)node->n * node->n * 1000000);
    CHECK(tally, node->min_x == big - spread && node->max_x == big + spread);
    arena_forget(&arena);
}

static void sums_are_printed_whole(Tally *tally) {
    char text[41];
    CHECK(tally, !strcmp(dump_sum(0, text), "0"));
    CHECK(tally, !strcmp(dump_sum(-(Sum)1, text), "-1"));
    CHECK(tally, !strcmp(dump_sum((Sum)1 << 126, text), "85070591730234615865843651857942052864"));
    CHECK(tally, !strcmp(dump_sum((Sum)1 << 127, text), "-170141183460469231731687303715884105728"));
}

/* 200 children, of which 63 and LOCAL are kept: the pairs still add up to the square of the cost. */
static void pairs_add_up_beyond_the_kids_apart(Tally *tally) {
    Arena arena = fresh(tally, 1 << 24);
    Node *node = nodes_child(&arena, node_at(&arena, ROOT), 0, 1);
    uint32_t cursor = 0;
    Offset bag = 0;
    int64_t x = 12345;
    for (int at = 0; at < 200; at++, x += at)
        bag_add(&arena, &bag, &(Touch){(int32_t)nodes_child(&arena, node, at, 2)->number, 2, 1, at}, &cursor);
    moments_add(&arena, node, x, bag_at(&arena, bag), NULL);
    Sum all = node->local_xx;
    const Pair *pairs = row_items(&arena, node->pairs);
    for (uint32_t at = 0; at < row_count(&arena, node->pairs); at++)
        all += pairs[at].i == pairs[at].j ? pairs[at].sum_yy : 2 * pairs[at].sum_yy;
    CHECK(tally, all == node->sum_xx);
    CHECK(tally, row_count(&arena, node->pairs) == 65 * 66 / 2 - 1);
    arena_forget(&arena);
}

void test_moments(Tally *tally) {
    buckets_are_four_to_a_power_of_two(tally);
    large_numbers_lose_nothing(tally);
    sums_are_printed_whole(tally);
    pairs_add_up_beyond_the_kids_apart(tally);
}
