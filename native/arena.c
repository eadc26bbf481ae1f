#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 1 << 16, LEAST_STEP = 256 << 10, MOST_STEP = 4 << 20 };

/* Multiples of 16 bytes up to 128, then four sizes to a power of two: at most a quarter of a block is wasted. */
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

/* Disk space is taken before it is mapped: a full disk is an error here, never a SIGBUS at some later store. */
static int map_more(Arena *arena, uint64_t step) {
    if (arena->mapped + step > arena->reserved) return ENOMEM;
    int error = posix_fallocate(arena->file, (off_t)arena->mapped, (off_t)step);
    if (error) return error;
    void *wanted = arena->base + arena->mapped;
    int how = MAP_SHARED | MAP_FIXED; /* over our own reservation, which nothing else uses */
    if (mmap(wanted, step, PROT_READ | PROT_WRITE, how, arena->file, (off_t)arena->mapped) == MAP_FAILED) return errno;
    arena->mapped += step;
    return 0;
}

static uint64_t whole_pages(uint64_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static int grow(Arena *arena, uint64_t end) {
    uint64_t least = whole_pages(end - arena->mapped), step = arena->mapped / 4;
    step = step < LEAST_STEP ? LEAST_STEP : step > MOST_STEP ? MOST_STEP : whole_pages(step);
    int error = map_more(arena, step > least ? step : least);
    if (error && step > least) error = map_more(arena, least); /* the generous step may be what does not fit */
    if (!error) arena->head->size = arena->mapped;
    return error;
}

static int reserve(Arena *arena, const char *path, uint64_t limit) {
    arena->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (arena->file < 0) return errno;
    arena->reserved = whole_pages(limit);
    arena->base = mmap(NULL, arena->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return arena->base == MAP_FAILED ? errno : map_more(arena, whole_pages(sizeof(Header)));
}

int arena_create(Arena *arena, const char *path, uint64_t limit) {
    *arena = (Arena){.file = -1, .base = MAP_FAILED};
    int error = reserve(arena, path, limit);
    if (error) {
        arena_forget(arena);
        return error;
    }
    arena->head = (Header *)arena->base;
    arena->head->version = LAYOUT_VERSION;
    arena->head->size_of_header = sizeof(Header);
    arena->head->used = (sizeof(Header) + 15) / 16 * 16;
    arena->head->size = arena->mapped;
    arena_publish();
    arena->head->magic = LAYOUT_MAGIC;
    return 0;
}

static int known(const Header *head, uint64_t size) {
    return head->magic == LAYOUT_MAGIC && head->version == LAYOUT_VERSION && head->size_of_header == sizeof(Header) &&
           head->used <= size;
}

int arena_attach(Arena *arena, const char *path) {
    *arena = (Arena){.file = open(path, O_RDONLY | O_CLOEXEC), .base = MAP_FAILED};
    struct stat about;
    if (arena->file < 0 || fstat(arena->file, &about)) return errno;
    int error = EPROTO;
    if ((uint64_t)about.st_size >= sizeof(Header)) {
        arena->reserved = arena->mapped = (uint64_t)about.st_size;
        arena->base = mmap(NULL, arena->mapped, PROT_READ, MAP_SHARED, arena->file, 0);
        arena->head = (Header *)arena->base;
        error = arena->base == MAP_FAILED ? errno : known(arena->head, arena->mapped) ? 0 : EPROTO;
    }
    if (error) arena_forget(arena);
    return error;
}

void arena_forget(Arena *arena) {
    if (arena->base != MAP_FAILED) munmap(arena->base, arena->reserved);
    if (arena->file >= 0) close(arena->file);
    *arena = (Arena){.file = -1, .base = MAP_FAILED};
}

Offset arena_alloc(Arena *arena, uint64_t size) {
    Header *head = arena->head;
    uint64_t rounded;
    unsigned kind = class_of(size, &rounded);
    Offset block = head->free[kind];
    if (block) {
        head->free[kind] = *(Offset *)arena_at(arena, block);
        return memset(arena_at(arena, block), 0, rounded), block;
    }
    int error = head->used + rounded > arena->mapped ? grow(arena, head->used + rounded) : 0;
    if (error) {
        if (!head->full) head->full = (uint32_t)error;
        return 0;
    }
    block = head->used; /* fresh file space is zero already */
    head->used += rounded;
    return block;
}

void arena_free(Arena *arena, Offset block, uint64_t size) {
    if (!block) return;
    uint64_t rounded;
    unsigned kind = class_of(size, &rounded);
    *(Offset *)arena_at(arena, block) = arena->head->free[kind];
    arena->head->free[kind] = block;
}
