#include "reservoir.h"

#include "nodes.h"
#include "runner.h"

static void the_scramble_is_the_twins(Tally *tally) {
    CHECK(tally, scramble(0) == 0);
    CHECK(tally, scramble(1) == 0xe220a8397b1dcdafull >> 2); /* SplitMix64's first output of seed 0 */
}

/* Keys 9999 ... 0 in a scattered order: the 512 smallest remain, and memory stays what they need. */
static void the_smallest_keys_are_kept(Tally *tally) {
    Tree *tree = fresh(tally, 1 << 26);
    Code *code = nodes_code(tree, 1);
    uint64_t half = 0;
    for (uint64_t at = 0; at < 40000; at++) {
        Frame invocation = {.key = (int32_t)(at * 7919 % 10000), .x = (int64_t)at, .node = node_at(tree, ROOT)};
        reservoir_offer(tree, code, at + 1, &invocation, bit_length(invocation.x));
        if (at == 20000) half = tree->arena.used;
    }
    const Bottom *uniform = code->reservoir[0];
    int right = 1;
    for (uint32_t at = 0; at < uniform->kept; at++) right &= uniform->heap[at].key < 128;
    CHECK(tally, uniform->kept == UNIFORM && right && uniform->bound == 127);
    CHECK(tally, tree->arena.used - half < 1 << 15);
    done(tree);
}

static void calls_not_drawn_are_in_their_stratum_only(Tally *tally) {
    Tree *tree = fresh(tally, 1 << 26);
    Code *code = nodes_code(tree, 1);
    Frame invocation = {.key = -1, .x = 5, .node = node_at(tree, ROOT)};
    for (uint64_t at = 1; at <= 100; at++) reservoir_offer(tree, code, at, &invocation, 3);
    CHECK(tally, code->reservoir[0]->kept == 0);
    CHECK(tally, code->reservoir[1 + 3]->kept == PER_STRATUM);
    done(tree);
}

/* The third function is one too many: the first two give samples back as well. */
static void many_functions_keep_fewer(Tally *tally) {
    Tree *tree = fresh(tally, 1 << 26);
    tree->limits.components = 2;
    for (int32_t number = 1; number <= 3; number++)
        for (uint64_t at = 1; at <= 1000; at++)
            reservoir_offer(tree, nodes_code(tree, number), at, &(Frame){.key = (int32_t)at, .x = 5, .node = node_at(tree, ROOT)}, 3);
    for (int32_t number = 1; number <= 3; number++) {
        const Code *code = nodes_code(tree, number);
        CHECK(tally, code->reservoir[0]->kept == UNIFORM / FEWER && code->reservoir[0]->bound == UNIFORM / FEWER);
        CHECK(tally, code->reservoir[1 + 3]->kept == PER_STRATUM / FEWER);
    }
    done(tree);
}

void test_reservoir(Tally *tally) {
    the_scramble_is_the_twins(tally);
    the_smallest_keys_are_kept(tally);
    calls_not_drawn_are_in_their_stratum_only(tally);
    many_functions_keep_fewer(tally);
}
