#include <string.h>

#include "core/library/calltree.h"
#include "runner.h"

static void blocks_are_zero_aligned_and_used_again(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    for (uint64_t size = 1; size < 100000; size = size * 3 / 2 + 1) {
        char *block = arena_alloc(&tree->arena, size);
        CHECK(tally, block && (uintptr_t)block % 16 == 0);
        memset(block, 0xff, size);
        arena_free(&tree->arena, block, size);
        CHECK(tally, arena_alloc(&tree->arena, size) == block);
        CHECK(tally, block[0] == 0 && memcmp(block, block + 1, size - 1) == 0);
        CHECK(tally, arena_block(&tree->arena, arena_number(&tree->arena, block)) == block);
    }
    done(tree);
}

static void blocks_do_not_overlap(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    for (uint64_t size = 1; size < 5000; size += 7) {
        char *block = arena_alloc(&tree->arena, size), *next = arena_alloc(&tree->arena, 1);
        CHECK(tally, next >= block + size || next < block);
    }
    done(tree);
}

static void larger_blocks_keep_what_was_there(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    void *block = NULL;
    CHECK(tally, arena_enlarge(&tree->arena, &block, 0, 40));
    memset(block, 1, 40);
    CHECK(tally, arena_enlarge(&tree->arena, &block, 40, 80));
    CHECK(tally, ((char *)block)[39] == 1 && ((char *)block)[40] == 0);
    done(tree);
}

static void a_cleared_arena_begins_anew(Tally *tally) {
    Arena arena;
    CHECK(tally, !arena_create(&arena, 1 << 22));
    char *first = arena_alloc(&arena, 1000), *second = arena_alloc(&arena, 1 << 20);
    memset(first, 1, 1000);
    memset(second, 1, 1 << 20);
    arena_free(&arena, second, 1 << 20);
    arena_clear(&arena);
    char *again = arena_alloc(&arena, 1000), *other = arena_alloc(&arena, 1 << 20);
    CHECK(tally, again == first && other == second);
    CHECK(tally, !again[0] && !again[999] && !other[0] && !other[(1 << 20) - 1]);
    arena_destroy(&arena);
}

/* A full arena refuses, and the tree takes nothing in from then on. */
static void the_limit_is_told(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 20);
    while (arena_alloc(&tree->arena, 4096)) continue;
    CHECK(tally, tree->arena.full);
    EventSource source = {0};
    calltree_feed(tree, &source, &(Event){0, 1, 1, 0, -1, EVENT_ENTER});
    CHECK(tally, tree->lost == 1 && !source.current);
    done(tree);
}

void test_arena(Tally *tally) {
    blocks_are_zero_aligned_and_used_again(tally);
    blocks_do_not_overlap(tally);
    larger_blocks_keep_what_was_there(tally);
    a_cleared_arena_begins_anew(tally);
    the_limit_is_told(tally);
}
