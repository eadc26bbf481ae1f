#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "calltree.h"
#include "runner.h"

static void blocks_are_zero_aligned_and_used_again(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    for (uint64_t size = 1; size < 100000; size = size * 3 / 2 + 1) {
        Offset block = arena_alloc(&arena, size);
        CHECK(tally, block && block % 16 == 0);
        memset(arena_at(&arena, block), 0xff, size);
        arena_free(&arena, block, size);
        CHECK(tally, arena_alloc(&arena, size) == block);
        const char *bytes = arena_at(&arena, block);
        CHECK(tally, bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
    }
    arena_forget(&arena);
}

static void blocks_do_not_overlap(Tally *tally) {
    Arena arena = fresh(tally, 1 << 26);
    for (uint64_t size = 1; size < 5000; size += 7) {
        Offset block = arena_alloc(&arena, size), next = arena_alloc(&arena, 1);
        CHECK(tally, next >= block + size || next < block);
    }
    arena_forget(&arena);
}

static void growth_moves_no_pointer(Tally *tally) {
    Arena arena = fresh(tally, 1 << 28);
    uint64_t *first = arena_at(&arena, arena_alloc(&arena, 64));
    *first = 42;
    for (int at = 0; at < 100; at++) arena_alloc(&arena, 1 << 20);
    *first += 1;
    Arena reader;
    CHECK(tally, arena_attach(&reader, tally->path) == 0);
    CHECK(tally, *(uint64_t *)(reader.base + ((uint8_t *)first - arena.base)) == 43);
    arena_forget(&reader);
    arena_forget(&arena);
}

static void the_limit_is_an_error_code(Tally *tally) {
    Arena arena = fresh(tally, 1 << 20);
    while (arena_alloc(&arena, 4096)) continue;
    CHECK(tally, arena.head->full == ENOMEM);
    Thread thread = {0};
    calltree_feed(&arena, &thread, &(Event){0, 1, 1, 0, -1, EVENT_ENTER});
    CHECK(tally, arena.head->tree.lost == 1 && thread.height == 0);
    arena_forget(&arena);
}

static void other_files_are_refused(Tally *tally) {
    Arena arena = fresh(tally, 1 << 20), reader;
    arena.head->version++;
    CHECK(tally, arena_attach(&reader, tally->path) == EPROTO);
    arena_forget(&arena);
    CHECK(tally, truncate(tally->path, 100) == 0);
    CHECK(tally, arena_attach(&reader, tally->path) == EPROTO);
    CHECK(tally, arena_attach(&reader, "/nonexistent/arena") == ENOENT);
}

void test_arena(Tally *tally) {
    blocks_are_zero_aligned_and_used_again(tally);
    blocks_do_not_overlap(tally);
    growth_moves_no_pointer(tally);
    the_limit_is_an_error_code(tally);
    other_files_are_refused(tally);
}
