/* A preloaded library that counts what a compiled program allocates and how long it waits for and holds locks.
 *
 * It stands before the C library (or another allocator) and calls what stands behind it, so the program gets the same
 * blocks and locks as ever. It is loaded only if one of its metrics is asked for.
 *
 * Threads: each thread counts for itself. Cost: an allocation is two additions; see locks.c. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static __thread int64_t bytes __attribute__((tls_model("initial-exec")));
static __thread int64_t blocks __attribute__((tls_model("initial-exec")));

EXPORTED int64_t perflaw_allocated_bytes(void) { return bytes; }
EXPORTED int64_t perflaw_allocated_blocks(void) { return blocks; }

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
} real;

/* What dlsym itself allocates while it looks for the real functions comes from here and is never given back. */
static char early[16384] __attribute__((aligned(16)));
static size_t early_used;
static int looking;

static int is_early(const void *block) { return (const char *)block >= early && (const char *)block < early + sizeof early; }

static void *allocate_early(size_t size) {
    size_t start = early_used, whole = (size + 15) / 16 * 16;
    if (whole < size || whole > sizeof early - start) return NULL;
    early_used += whole;
    return early + start;
}

__attribute__((constructor)) static void find(void) {
    if (real.free || looking) return;
    looking = 1;
    real.malloc = dlsym(RTLD_NEXT, "malloc");
    real.calloc = dlsym(RTLD_NEXT, "calloc");
    real.realloc = dlsym(RTLD_NEXT, "realloc");
    real.memalign = dlsym(RTLD_NEXT, "memalign");
    real.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    real.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    real.free = dlsym(RTLD_NEXT, "free");
    looking = 0;
}

static void *counted(void *block, size_t size) {
    if (block) {
        bytes += (int64_t)size;
        blocks++;
    }
    return block;
}

EXPORTED void *malloc(size_t size) {
    if (!real.malloc) find();
    return real.malloc ? counted(real.malloc(size), size) : allocate_early(size);
}

EXPORTED void *calloc(size_t items, size_t size) {
    if (!real.calloc) find();
    if (real.calloc) return counted(real.calloc(items, size), items * size);
    return size && items > SIZE_MAX / size ? NULL : allocate_early(items * size); /* it is zero, as it is used once */
}

EXPORTED void *realloc(void *block, size_t size) {
    if (!real.realloc) find();
    if (!is_early(block)) return real.realloc ? counted(real.realloc(block, size), size) : allocate_early(size);
    void *moved = malloc(size);
    size_t left = (size_t)(early + sizeof early - (char *)block);
    if (moved) memcpy(moved, block, size < left ? size : left);
    return moved;
}

EXPORTED void free(void *block) {
    if (!real.free) find();
    if (real.free && !is_early(block)) real.free(block);
}

EXPORTED void *memalign(size_t alignment, size_t size) {
    if (!real.memalign) find();
    return real.memalign ? counted(real.memalign(alignment, size), size) : NULL;
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size) {
    if (!real.aligned_alloc) find();
    return real.aligned_alloc ? counted(real.aligned_alloc(alignment, size), size) : NULL;
}

EXPORTED int posix_memalign(void **block, size_t alignment, size_t size) {
    if (!real.posix_memalign) find();
    int error = real.posix_memalign ? real.posix_memalign(block, alignment, size) : ENOMEM;
    if (!error) counted(*block, size);
    return error;
}
