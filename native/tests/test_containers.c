#include "bag.h"
#include "grid.h"
#include "runner.h"
#include "table.h"

static void grids_keep_their_items_in_place(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    Grid grid = {.item = sizeof(uint64_t)};
    uint64_t *first = grid_reach(&arena, &grid, 0);
    for (uint32_t at = 0; at < 5000; at++) *(uint64_t *)grid_reach(&arena, &grid, at) = at;
    int right = 1;
    for (uint32_t at = 0; at < 5000; at++) right &= *(uint64_t *)grid_at(&arena, &grid, at) == at;
    CHECK(tally, right && grid.count == 5000 && first == grid_at(&arena, &grid, 0));
    CHECK(tally, grid_reach(&arena, &grid, 100000) && grid.count == 100001);
    CHECK(tally, *(uint64_t *)grid_at(&arena, &grid, 50000) == 0);
    arena_forget(&arena);
}

/* Every key that was put and not popped is found, whatever stood between: against a plain array. */
static void tables_forget_what_is_popped_and_nothing_else(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    Table table = {0};
    uint32_t values[512] = {0}, right = 1, chance = 1;
    for (uint32_t step = 1; step < 100000; step++) {
        chance = chance * 1664525u + 1013904223u;
        uint32_t key = chance >> 23, put = chance >> 8 & 1;
        if (put) right &= (uint32_t)table_put(&arena, &table, key & 7, key, 0, step);
        else right &= table_pop(&arena, &table, key & 7, key, 0) == values[key];
        values[key] = put ? step : 0;
        right &= table_get(&arena, &table, (key + 1) % 512 & 7, (key + 1) % 512, 0) == values[(key + 1) % 512];
    }
    CHECK(tally, right);
    CHECK(tally, table.capacity <= 2048);
    arena_forget(&arena);
}

static void bags_add_up(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    Offset bag = 0;
    for (int turn = 0; turn < 3; turn++) {
        uint32_t cursor = 0;
        for (int at = 0; at < 600; at++)
            bag_add(&arena, &bag, &(Touch){.node = at * 7 % 200, .calls = 1, .cost = at}, &cursor);
        Bag *held = bag_at(&arena, bag);
        int64_t cost = 0;
        int thrice = 1;
        for (uint32_t at = 0; at < held->count; at++) {
            cost += held->items[at].cost;
            thrice &= held->items[at].calls == 3;
        }
        CHECK(tally, held->count == 200 && thrice && cost == 600 * 599 / 2);
        bag_clear(&arena, &bag);
        CHECK(tally, bag_count(bag_at(&arena, bag)) == 0);
    }
    arena_forget(&arena);
}

static void a_large_bag_is_given_back(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    Offset bag = 0;
    uint32_t cursor = 0;
    for (int at = 0; at < 1000; at++) bag_add(&arena, &bag, &(Touch){.node = at, .calls = 1}, &cursor);
    bag_clear(&arena, &bag);
    bag_add(&arena, &bag, &(Touch){.node = 1, .calls = 1}, &cursor);
    bag_clear(&arena, &bag);
    CHECK(tally, bag == 0);
    arena_forget(&arena);
}

void test_containers(Tally *tally) {
    grids_keep_their_items_in_place(tally);
    tables_forget_what_is_popped_and_nothing_else(tally);
    bags_add_up(tally);
    a_large_bag_is_given_back(tally);
}
