#include "core/paths/paths.h"

#include "core/library/calltree.h"
#include "core/library/core.h"
#include "core/tree/lanes.h"
#include "core/tree/nodes.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>

/* ---- logarithms ---- */

static void logarithms_are_exact(Tally *tally) {
    LogTable *logs = malloc(sizeof(LogTable));
    log_table_fill(logs);
    int right = log_of(logs, 1) == 0 && log_of(logs, 2) == 1024 && log_of(logs, 1ull << 62) == 62 * 1024;
    for (uint64_t x = 3; x < 1ull << 40; x += 1 + x / 97)
        right &= log_of(logs, x) == (uint32_t)floorl(1024 * log2l((long double)x));
    CHECK(tally, right);
    right = 1;
    for (unsigned j = 1; j < 40 * 1024; j++) { /* the two whole numbers around a bound that lies between them */
        long double bound = exp2l((long double)j / 1024);
        uint64_t below = (uint64_t)bound;
        if (below < 1 || j % 1024 == 0) continue;
        right &= log_of(logs, below) < j && log_of(logs, below + 1) >= j;
    }
    CHECK(tally, right);
    free(logs);
}

/* ---- histograms ---- */

static uint64_t total_of(const LogHistogram *histogram) {
    uint64_t total = 0;
    for (uint32_t at = 0; at < histogram->length; at++) total += histogram->counts[at];
    return total;
}

static void a_wide_range_makes_coarse_buckets(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    LogHistogram up = {.scale = MAX_SCALE}, down = up;
    for (int32_t index = -1; index < 60000; index += 7) log_histogram_add(&tree->arena, &up, index);
    for (int32_t index = 59996; index >= -1; index -= 7) log_histogram_add(&tree->arena, &down, index);
    CHECK(tally, up.scale == 3 && down.scale == 3);
    CHECK(tally, total_of(&up) == 8572 && total_of(&down) == 8572);
    int same = 1;
    for (int32_t index = -1; index < 59999 >> 7; index++)
        same &= up.counts[index - up.low] == down.counts[index - down.low];
    CHECK(tally, same);
    log_histogram_clear(&up);
    log_histogram_add(&tree->arena, &up, 77);
    CHECK(tally, up.scale == MAX_SCALE && total_of(&up) == 1 && up.counts[77 - up.low] == 1);
    done(tree);
}

/* ---- batches ---- */

static void batches_are_of_powers_of_two(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    Batches batches = {0};
    for (uint32_t number = 1; number <= 7; number++) batches_add(&tree->arena, &batches, number);
    BatchSums levels[BATCH_LEVELS];
    CHECK(tally, batches_count(&batches) == 3);
    batches_write(&batches, levels, 3);
    CHECK(tally, levels[0].batches == 7 && levels[0].sum == 28 && levels[0].squares == 140);
    CHECK(tally, levels[1].batches == 3 && levels[1].sum == 21 && levels[1].squares == 9 + 49 + 121);
    CHECK(tally, levels[2].batches == 1 && levels[2].sum == 10 && levels[2].squares == 100);
    done(tree);
}

/* ---- observations ---- */

enum { CALL_NS = 20000 };

/* So many calls of function 2 from function 1, of 1 + (call % 100) ns, one every CALL_NS. */
static void call(Tree *tree, EventSource *source, int64_t from, int64_t count) {
    for (int64_t at = from; at < from + count; at++) {
        int64_t now = at * CALL_NS;
        PLAY(tree, source, {{now, 2, 2, 0, -1, EVENT_ENTER}, {now + 1 + at % 100, 2, 2, 0, -1, EVENT_EXIT}});
    }
}

static uint64_t points_of(const FunctionPaths *code) {
    uint64_t points = 0;
    for (uint32_t at = 0; at < code->count; at++) points += code->closed[at].points;
    return points;
}

static uint64_t in_buckets(const PathNode *path) {
    uint64_t points = 0;
    for (const Piece *piece = path->first; piece; piece = piece->next) {
        points += piece->zeros;
        for (uint32_t at = 0; at < piece->buckets; at++) points += piece_buckets(piece)[at].count;
    }
    return points;
}

static Tree *collecting(Tally *tally, EventSource *source, uint64_t limit) {
    Tree *tree = uncounted(tally, 1 << 27);
    CHECK(tally, paths_begin(tree, 2, limit));
    PLAY(tree, source, {{0, 1, 1, 0, -1, EVENT_ENTER}});
    return tree;
}

static void observations_are_closed_by_count_and_bounded(Tally *tally) {
    EventSource source = {0};
    Tree *tree = collecting(tally, &source, 64 << 20);
    call(tree, &source, 0, 1500);
    const FunctionPaths *code = nodes_function(tree, 2)->paths;
    CHECK(tally, code->count == 1 && code->closed[0].points == MIN_CALLS && code->open.points == 500);
    call(tree, &source, 1500, 98500);
    CHECK(tally, code->count >= MAX_OBSERVATIONS / 2 && code->count <= MAX_OBSERVATIONS && code->doubled == 1);
    paths_finish(tree);
    CHECK(tally, points_of(code) == 100000 && in_buckets(code->whole.next) == 100000);
    const Piece *piece = code->whole.last;
    CHECK(tally, piece->observation + 1 == code->count &&
          piece_levels(piece)[0].batches == code->closed[code->count - 1].points);
    done(tree);
}

static void a_remainder_joins_the_last(Tally *tally) {
    EventSource source = {0};
    Tree *tree = collecting(tally, &source, 64 << 20);
    call(tree, &source, 0, 2300);
    paths_finish(tree);
    const FunctionPaths *code = nodes_function(tree, 2)->paths;
    CHECK(tally, code->count == 2 && code->closed[1].points == 1300 && in_buckets(code->whole.next) == 2300);
    CHECK(tally, code->closed[1].end == 2299 * (int64_t)CALL_NS + 100);
    done(tree);
}

/* 1 and 2 are bounds of buckets, which belong to the bucket below. */
static void buckets_hold_their_upper_bounds(Tally *tally) {
    EventSource source = {0};
    Tree *tree = collecting(tally, &source, 64 << 20);
    for (int64_t x = 0; x <= 2; x++) PLAY(tree, &source, {{0, 2, 2, 0, -1, EVENT_ENTER}, {x, 2, 2, 0, -1, EVENT_EXIT}});
    paths_finish(tree);
    const Piece *piece = nodes_function(tree, 2)->paths->whole.next->first;
    CHECK(tally, piece->zeros == 1 && piece->scale == 9 && piece->buckets == 2);
    CHECK(tally, piece_buckets(piece)[0].index == -1 && piece_buckets(piece)[1].index == 511);
    done(tree);
}

static void cpu_time_is_apart_from_the_first_call_off_the_cpu_on(Tally *tally) {
    EventSource source = {0};
    Tree *tree = collecting(tally, &source, 64 << 20);
    PLAY(tree, &source,
         {{0, 2, 2, 0, -1, EVENT_ENTER}, {8, 2, 2, 0, -1, EVENT_EXIT}, {10, 2, 2, 0, -1, EVENT_ENTER},
          {4, 0, METRIC_CPU, 0, -1, EVENT_CHANGE}, {18, 2, 2, 0, -1, EVENT_EXIT}});
    paths_finish(tree);
    const Piece *piece = nodes_function(tree, 2)->paths->whole.next->first;
    CHECK(tally, piece->buckets == 1 && piece_buckets(piece)[0].count == 2);
    CHECK(tally, piece->cpu && piece->cpu->buckets == 2 && piece_levels(piece->cpu)[0].sum == 5 * 1024);
    done(tree);
}

/* Function 2 spends more time than any other, so it stays. */
static void the_lightest_functions_are_dropped(Tally *tally) {
    EventSource source = {0};
    Tree *tree = collecting(tally, &source, 1 << 17);
    for (int64_t at = 0; at < 200000; at++) {
        int32_t code = at % 2 ? 2 : (int32_t)(3 + at / 2 % 500);
        int64_t now = at * CALL_NS, lasts = code == 2 ? 1000 + at % 100 : 1 + at * 7919 % 1000;
        PLAY(tree, &source, {{now, 2, code, 0, -1, EVENT_ENTER}, {now + lasts, 2, code, 0, -1, EVENT_EXIT}});
    }
    paths_finish(tree);
    CHECK(tally, tree->paths->dropped > 100 && tree->paths->bytes < 1 << 18);
    CHECK(tally, !nodes_function(tree, 2)->paths->dropped &&
          in_buckets(nodes_function(tree, 2)->paths->whole.next) == 100000);
    done(tree);
}

static void what_is_dropped_takes_no_room(Tally *tally) {
    EventSource source = {0};
    Tree *tree = collecting(tally, &source, 64 << 20);
    for (int64_t at = 0; at < 90000; at++) {
        int32_t code = (int32_t)(2 + at % 3);
        int64_t now = at * CALL_NS, lasts = 1 + at * 7919 % 100000;
        PLAY(tree, &source, {{now, 2, code, 0, -1, EVENT_ENTER}});
        if (at % 1000 < 10) PLAY(tree, &source, {{lasts / 2, 0, METRIC_CPU, 0, -1, EVENT_CHANGE}});
        PLAY(tree, &source, {{now + lasts, 2, code, 0, -1, EVENT_EXIT}});
    }
    CHECK(tally, tree->paths->bytes > 1 << 14);
    tree->paths->limit = 0;
    call(tree, &source, 90000, 3);
    CHECK(tally, tree->paths->dropped == 3 && tree->paths->bytes == 0);
    paths_finish(tree);
    done(tree);
}

void test_paths(Tally *tally) {
    logarithms_are_exact(tally);
    a_wide_range_makes_coarse_buckets(tally);
    batches_are_of_powers_of_two(tally);
    observations_are_closed_by_count_and_bounded(tally);
    a_remainder_joins_the_last(tally);
    buckets_hold_their_upper_bounds(tally);
    cpu_time_is_apart_from_the_first_call_off_the_cpu_on(tally);
    the_lightest_functions_are_dropped(tally);
    what_is_dropped_takes_no_room(tally);
}
