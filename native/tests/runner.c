#include "runner.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/library/calltree.h"

void check(Tally *tally, int fine, const char *what, const char *file, int line) {
    if (fine) tally->passed++;
    else tally->failed++;
    if (!fine) printf("%s:%d: failed: %s\n", file, line, what);
}

Tree *uncounted(Tally *tally, uint64_t memory) {
    Tree *tree = malloc(sizeof(Tree));
    CHECK(tally, tree && calltree_begin(tree, 0, MAX_DISTANCE, memory) == 0);
    return tree;
}

void done(Tree *tree) {
    calltree_destroy(tree);
    free(tree);
}

void play(Tree *tree, EventSource *source, const Event *events, int count) {
    for (int at = 0; at < count; at++) calltree_feed(tree, source, &events[at]);
}

int main(void) {
    Tally tally = {0};
    void (*const suites[])(Tally *) = {test_arena, test_containers, test_clock, test_cpu, test_trials, test_skips, test_smaller_skips,
                                       test_moments, test_chains, test_reservoir, test_calltree, test_stacks,
                                       test_spans, test_paths, test_core};
    for (size_t at = 0; at < sizeof suites / sizeof *suites; at++) suites[at](&tally);
    printf("%d passed, %d failed\n", tally.passed, tally.failed);
    return tally.failed != 0;
}
