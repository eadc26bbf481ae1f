#include "mirror.h"

#include <pthread.h>
#include <sys/mman.h>

#include "compiled/threads.h"
#include "compiled/vectors.h"
#include "core/base/table.h"

/* A mirror is mapped in pieces of this size, which stacks that lie side by side share. */
#define PIECE ((uintptr_t)1 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Arena arena;
static Table pieces; /* those that are mapped, by their number */

/* In a forked child another thread may have held the lock; what is mapped is mapped there too. */
void mirror_forget(void) { pthread_mutex_init(&lock, NULL); }

static int map_piece(uintptr_t piece) {
    if (table_get(&pieces, (uint32_t)piece, 0, 0)) return 1;
    if (!arena.base && arena_create(&arena, 1ull << 26)) return 0;
    void *wanted = mirror_of(piece * PIECE);
    void *mapped = mmap(wanted, PIECE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    if (mapped == wanted && table_put(&arena, &pieces, (uint32_t)piece, 0, 0, 1)) return 1;
    munmap(mapped, PIECE);
    return 0;
}

__attribute__((noinline)) int mirror_reach(Thread *thread, uintptr_t slot) {
    KEEP_VECTORS;
    Interruptions before;
    if (thread->stack_high == UINTPTR_MAX || slot < 2 * (uintptr_t)MIRROR_DISTANCE) return 0;
    signals_hold(&before); /* a handler that jumped out of here would leave the lock taken */
    pthread_mutex_lock(&lock);
    uintptr_t first = slot / PIECE, piece = (thread->stack_high - 1) / PIECE;
    if (thread->mirrored != UINTPTR_MAX) piece = thread->mirrored / PIECE - 1;
    while (piece >= first && map_piece(piece)) thread->mirrored = piece-- * PIECE;
    pthread_mutex_unlock(&lock);
    signals_release(&before);
    return thread->mirrored <= slot;
}
