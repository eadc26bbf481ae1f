/* ns an event of the core alone: a chain of calls down to a depth and back, with and without links to descendants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calltree.h"
#include "clock.h"

enum { CALLS = 2000000 };

static void chain(Arena *arena, Thread *thread, const Clock *clock, int depth) {
    for (int at = 1; at <= depth; at++)
        calltree_enter(arena, thread, &(Event){clock_ns(clock), at, at, at, -1, EVENT_ENTER});
    for (int at = depth; at; at--) calltree_exit(arena, thread, clock_ns(clock), at);
}

static double events(const Clock *clock, int depth, uint32_t distance, const char *path) {
    Arena arena;
    if (arena_create(&arena, path, 1ull << 33) || calltree_begin(&arena, 0, distance)) exit(1);
    Thread *thread = calltree_thread(&arena, 1);
    chain(&arena, thread, clock, depth);
    int64_t start = clock_plain_ns();
    for (int at = 0; at < CALLS / depth; at++) chain(&arena, thread, clock, depth);
    double passed = (double)(clock_plain_ns() - start) / (2.0 * (CALLS / depth) * depth);
    arena_forget(&arena);
    return passed;
}

static void best(const Clock *clock, const char *name, int depth, uint32_t distance, const char *path) {
    double least = 1e9;
    for (int at = 0; at < 5; at++) {
        double passed = events(clock, depth, distance, path);
        least = passed < least ? passed : least;
    }
    printf("%s, depth %2d: %6.1f ns an event, links %s\n", name, depth, least, distance ? "on" : "off");
}

/* Calls over 1,000 functions and depth 50 at random, every other call drawn for the sample: what it takes in memory. */
static void churn(const char *path, uint32_t calls) {
    Arena arena;
    if (arena_create(&arena, path, 1ull << 33) || calltree_begin(&arena, 0, MAX_DISTANCE)) exit(1);
    Thread *thread = calltree_thread(&arena, 1);
    uint64_t chance = 1;
    int64_t now = 0, start = clock_plain_ns();
    for (uint32_t called = 0; called < calls;) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        now += chance >> 54;
        if (thread->height && (thread->height == 50 || chance >> 63)) {
            calltree_exit(&arena, thread, now, thread->height);
            continue;
        }
        /* Each function calls four others, as a program does, and the last few levels are where most happens. */
        int32_t code = (int32_t)((thread->height * 20 + (chance >> 40 & 3)) % 1000 + 1), key = (int32_t)(chance >> 20 & INT32_MAX);
        calltree_enter(&arena, thread, &(Event){now, thread->height + 1, code, 0, chance & 256 ? key : -1, EVENT_ENTER});
        called++;
    }
    double passed = (double)(clock_plain_ns() - start) / (2.0 * calls);
    printf("churn, %u calls: %.1f ns an event, %u nodes, %.1f MB\n", calls, passed, arena.head->tree.nodes.count - 1,
           (double)arena.head->used / 1e6);
    arena_forget(&arena);
}

int main(void) {
    char path[] = "/dev/shm/perflaw-bench-XXXXXX";
    if (mkstemp(path) < 0) return 1;
    Clock clock;
    int64_t still = 0;
    printf("clock: %s\n", clock_start(&clock));
    Clock fake = clock_fake(&still);
    for (int depth = 5; depth <= 50; depth *= 10)
        for (uint32_t distance = 0; distance <= MAX_DISTANCE; distance += MAX_DISTANCE) {
            best(&fake, "tree alone    ", depth, distance, path);
            best(&clock, "with the clock", depth, distance, path);
        }
    churn(path, 1000000);
    churn(path, 10000000);
    unlink(path);
    return 0;
}
