#include "core/tree/descendants.h"
#include "core/base/grid.h"
#include "core/tree/lanes.h"
#include "runner.h"
#include "core/base/table.h"

static void grids_keep_their_items_in_place(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    Grid grid = {.item_size = sizeof(uint64_t)};
    uint64_t *first = grid_ensure(&tree->arena, &grid, 0);
    for (uint32_t at = 0; at < 5000; at++) *(uint64_t *)grid_ensure(&tree->arena, &grid, at) = at;
    int right = 1;
    for (uint32_t at = 0; at < 5000; at++) right &= *(uint64_t *)grid_at(&grid, at) == at;
    CHECK(tally, right && grid.count == 5000 && first == grid_at(&grid, 0));
    CHECK(tally, grid_ensure(&tree->arena, &grid, 100000) && grid.count == 100001);
    CHECK(tally, *(uint64_t *)grid_at(&grid, 50000) == 0);
    done(tree);
}

/* Every key that was put and not popped is found, whatever stood between: against a plain array. */
static void tables_forget_what_is_popped_and_nothing_else(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    Table table = {0};
    uint32_t values[512] = {0}, right = 1, chance = 1;
    for (uint32_t step = 1; step < 100000; step++) {
        chance = chance * 1664525u + 1013904223u;
        uint32_t key = chance >> 23, put = chance >> 8 & 1;
        if (put) right &= (uint32_t)table_put(&tree->arena, &table, key & 7, key, 0, step);
        else right &= table_pop(&table, key & 7, key, 0) == values[key];
        values[key] = put ? step : 0;
        right &= table_get(&table, (key + 1) % 512 & 7, (key + 1) % 512, 0) == values[(key + 1) % 512];
    }
    CHECK(tally, right);
    CHECK(tally, table.capacity <= 2048);
    done(tree);
}

static void bags_add_up(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    Descendants bag = {0};
    for (int turn = 0; turn < 3; turn++) {
        for (int at = 0; at < 600; at++)
            descendants_add(&tree->arena, &bag, &(Descendant){.node = at * 7 % 200, .calls = 1, .time = at, .events = 2});
        int64_t time = 0;
        int thrice = 1;
        for (uint32_t at = 0; at < bag.count; at++) {
            time += bag.items[at].time;
            thrice &= bag.items[at].calls == 3 && bag.items[at].events == 6;
        }
        CHECK(tally, bag.count == 200 && thrice && time == 600 * 599 / 2);
        lane_add(&tree->arena, descendants_changes(&tree->arena, &bag, 150), METRIC_MORE, turn);
        descendants_clear(&tree->arena, &bag);
        CHECK(tally, bag.count == 0 && !bag.changes);
    }
    done(tree);
}

static void a_large_bag_is_given_back(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    Descendants bag = {0};
    for (int at = 0; at < 1000; at++) descendants_add(&tree->arena, &bag, &(Descendant){.node = at});
    descendants_clear(&tree->arena, &bag);
    CHECK(tally, bag.capacity >= 1000);
    descendants_add(&tree->arena, &bag, &(Descendant){.node = 1});
    descendants_clear(&tree->arena, &bag);
    CHECK(tally, bag.capacity == 0);
    done(tree);
}

static void changes_add_up_by_metric(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 20);
    Lane *a = NULL, *b = NULL;
    lane_add(&tree->arena, &a, 1, 5);
    lane_add(&tree->arena, &a, 3, 7);
    lane_add(&tree->arena, &b, 3, -2);
    lane_merge(&tree->arena, &b, a);
    CHECK(tally, lane_value(b, 1) == 5 && lane_value(b, 3) == 5 && lane_value(b, 4) == 0);
    lane_clear(&tree->arena, &b);
    CHECK(tally, !b && lane_value(a, 3) == 7);
    done(tree);
}

void test_containers(Tally *tally) {
    grids_keep_their_items_in_place(tally);
    tables_forget_what_is_popped_and_nothing_else(tally);
    bags_add_up(tally);
    a_large_bag_is_given_back(tally);
    changes_add_up_by_metric(tally);
}
