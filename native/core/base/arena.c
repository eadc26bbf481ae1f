#include "arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { MIN_SIZE = 1 << 20, FIRST_BLOCK = 16 }; /* no block is at offset 0, because number 0 stands for no block */

/* An arena is one mapping, of which AddressSanitizer would allow every byte; so tests under it are told what is a block.
 * Blocks then stand apart. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { GAP = 16 };
#define FORBID(place, size) __asan_poison_memory_region(place, size)
#define ALLOW(place, size) __asan_unpoison_memory_region(place, size)
#else
enum { GAP = 0 };
#define FORBID(place, size) (void)(place), (void)(size)
#define ALLOW(place, size) (void)(place), (void)(size)
#endif

/* The size class of a block. Classes are multiples of 16 bytes up to 128, and then four to a power of two, so that
 * at most a quarter of a block is wasted. */
static unsigned class_of(uint64_t size, uint64_t *rounded) {
    uint64_t units = size ? (size + 15) / 16 : 1;
    if (units <= 8) {
        *rounded = units * 16;
        return (unsigned)units;
    }
    unsigned bits = 63u - (unsigned)__builtin_clzll(units - 1), step = (unsigned)((units - 1) >> (bits - 2)) & 3;
    *rounded = ((uint64_t)(5 + step) << (bits - 2)) * 16;
    return 9 + (bits - 3) * 4 + step;
}

int arena_create(Arena *arena, uint64_t limit) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    *arena = (Arena){.size = limit, .used = FIRST_BLOCK};
    while ((arena->base = mmap(NULL, arena->size, PROT_READ | PROT_WRITE, flags, -1, 0)) == MAP_FAILED) {
        if (errno != ENOMEM || arena->size / 2 < MIN_SIZE) return errno;
        arena->size /= 2; /* `ulimit -v` is set, or the system promises no more than it has */
    }
    return 0;
}

void arena_destroy(Arena *arena) {
    ALLOW(arena->base, arena->used);
    munmap(arena->base, arena->size);
    *arena = (Arena){0};
}

void arena_clear(Arena *arena) {
    ALLOW(arena->base, arena->used);
    madvise(arena->base, arena->used, MADV_DONTNEED);
    *arena = (Arena){.base = arena->base, .size = arena->size, .used = FIRST_BLOCK};
}

void *arena_alloc(Arena *arena, uint64_t size) {
    uint64_t rounded;
    unsigned class = class_of(size, &rounded);
    void *block = arena->free[class];
    if (block) {
        ALLOW(block, size);
        ALLOW(block, sizeof(void *));
        arena->free[class] = *(void **)block;
        memset(block, 0, size < sizeof(void *) ? sizeof(void *) : size);
        return block;
    }
    if (rounded + GAP > arena->size - arena->used) {
        arena->full = 1;
        return NULL;
    }
    block = arena->base + arena->used;
    arena->used += rounded + GAP;
    FORBID((char *)block + size, rounded + GAP - size);
    return block;
}

void arena_free(Arena *arena, void *block, uint64_t size) {
    if (!block) return;
    uint64_t rounded;
    unsigned class = class_of(size, &rounded);
    ALLOW(block, rounded);
    *(void **)block = arena->free[class];
    arena->free[class] = block;
    FORBID(block, rounded);
}

int arena_enlarge(Arena *arena, void **block, uint64_t size, uint64_t larger) {
    void *new = arena_alloc(arena, larger);
    if (!new) return 0;
    if (*block) memcpy(new, *block, size);
    arena_free(arena, *block, size);
    *block = new;
    return 1;
}
