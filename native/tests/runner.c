#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "calltree.h"

void check(Tally *tally, int fine, const char *what, const char *file, int line) {
    if (fine) tally->passed++;
    else tally->failed++;
    if (!fine) printf("%s:%d: failed: %s\n", file, line, what);
}

Arena fresh(Tally *tally, uint64_t limit) {
    Arena arena;
    CHECK(tally, arena_create(&arena, tally->path, limit) == 0);
    CHECK(tally, calltree_begin(&arena, 0, MAX_DISTANCE) == 0);
    return arena;
}

int main(void) {
    char path[] = "/tmp/perflaw-unit-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) return perror(path), 1;
    close(file);
    Tally tally = {.path = path};
    void (*const suites[])(Tally *) = {test_arena,   test_containers, test_clock,
                                       test_moments, test_reservoir,  test_calltree};
    for (size_t at = 0; at < sizeof suites / sizeof *suites; at++) suites[at](&tally);
    unlink(path);
    printf("%d passed, %d failed\n", tally.passed, tally.failed);
    return tally.failed != 0;
}
