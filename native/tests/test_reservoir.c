#include "core/tree/reservoir.h"

#include "core/tree/nodes.h"
#include "runner.h"

static void the_scramble_is_the_twins(Tally *tally) {
    CHECK(tally, scramble(0) == 0);
    CHECK(tally, scramble(1) == 0xe220a8397b1dcdafull >> 2); /* SplitMix64's first output of seed 0 */
}

/* Keys 9999 ... 0 in a scattered order: the 512 smallest remain, and memory stays what they need. */
static void the_smallest_keys_are_kept(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    Function *code = nodes_function(tree, 1);
    uint64_t half = 0;
    for (uint64_t at = 0; at < 40000; at++) {
        Invocation invocation = {.key = (int32_t)(at * 7919 % 10000), .time = (int64_t)at, .node = node_at(tree, ROOT)};
        reservoir_offer(tree, code, at + 1, &invocation, bit_length(invocation.time));
        if (at == 20000) half = tree->arena.used;
    }
    const BottomK *uniform = code->reservoir[0];
    int right = 1;
    for (uint32_t at = 0; at < uniform->count; at++) right &= uniform->heap[at].key < 128;
    CHECK(tally, uniform->count == UNIFORM_SIZE && right && uniform->bound == 127);
    CHECK(tally, tree->arena.used - half < 1 << 15);
    done(tree);
}

static void calls_not_drawn_are_in_their_stratum_only(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    Function *code = nodes_function(tree, 1);
    Invocation invocation = {.key = -1, .time = 5, .node = node_at(tree, ROOT)};
    for (uint64_t at = 1; at <= 100; at++) reservoir_offer(tree, code, at, &invocation, 3);
    CHECK(tally, code->reservoir[0]->count == 0);
    CHECK(tally, code->reservoir[1 + 3]->count == STRATUM_SIZE);
    done(tree);
}

/* The third function is one too many: the first two give samples back as well. */
static void many_functions_keep_fewer(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    tree->limits.components = 2;
    for (int32_t number = 1; number <= 3; number++)
        for (uint64_t at = 1; at <= 1000; at++)
            reservoir_offer(tree, nodes_function(tree, number), at,
                            &(Invocation){.key = (int32_t)at, .time = 5, .node = node_at(tree, ROOT)}, 3);
    for (int32_t number = 1; number <= 3; number++) {
        const Function *code = nodes_function(tree, number);
        CHECK(tally, code->reservoir[0]->count == UNIFORM_SIZE / SHRINK_FACTOR &&
              code->reservoir[0]->bound == UNIFORM_SIZE / SHRINK_FACTOR);
        CHECK(tally, code->reservoir[1 + 3]->count == STRATUM_SIZE / SHRINK_FACTOR);
    }
    done(tree);
}

void test_reservoir(Tally *tally) {
    the_scramble_is_the_twins(tally);
    the_smallest_keys_are_kept(tally);
    calls_not_drawn_are_in_their_stratum_only(tally);
    many_functions_keep_fewer(tally);
}
