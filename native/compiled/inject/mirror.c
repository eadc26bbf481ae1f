#include "mirror.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "compiled/threads.h"
#include "compiled/vectors.h"

/* A mirror is mapped in pieces of this size, which stacks that lie side by side share. */
#define PIECE ((uintptr_t)1 << 20)

/* A process may have several copies of this library: one that was preloaded, and those of recorders of several builds, or that
 * record at the same time. They share the mirror, and find each other by a directory at a fixed address: between what a
 * program's heap may reach and AddressSanitizer's heap, whose shadow takes all that is below 16 TB. */
#define DIRECTORY ((Directory *)0x5fff00000000)
#define MAGIC 0x335249444d465250ull /* "PRFMDIR3" */
enum { MAX_COPIES = 1024, MAX_PIECES = 15000, MAX_JUMP_TABLES = 1024, COMPARED = 5 };

/* The jumps that one copy had written into one file. */
typedef struct JumpTable {
    uint64_t rows, count, is_over; /* rows: their address; count: 0 if the entry is free; is_over: nobody records by them */
} JumpTable;

typedef struct Copy {
    uint64_t leave;  /* its exit stub */
    uint64_t attach; /* the function by which it records again; 0 if it cannot */
    uint64_t build;  /* of which build it is */
    uint64_t state;  /* enum CopyState */
} Copy;

/* record/attach/directory.py reads it. */
typedef struct Directory {
    uint64_t magic, copy_count, piece_count;
    JumpTable jumps[MAX_JUMP_TABLES];
    Copy copies[MAX_COPIES];
    uint64_t pieces[MAX_PIECES]; /* numbers of the pieces that are mapped */
} Directory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Directory *directory;
static Copy *copy; /* this one */
int mirror_has_copies;
static int is_quick = 1; /* whether mirror_may_leave knows the exit stubs of all copies */

/* In a forked child another thread may have held the lock; what is mapped is mapped there too. */
void mirror_forget(void) { pthread_mutex_init(&lock, NULL); }

static int map_at(void *wanted, size_t size) {
    void *mapped = mmap(wanted, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == wanted) return 1;
    if (mapped != MAP_FAILED) munmap(mapped, size);
    return 0;
}

/* Whether an earlier copy has made the directory. What lies at its address may be something else. */
static int is_there(void) {
    uint64_t magic = 0;
    struct iovec to = {&magic, sizeof magic}, from = {DIRECTORY, sizeof magic};
    return syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul) == (long)sizeof magic && magic == MAGIC;
}

int mirror_start(uintptr_t leave) {
    if (copy) return 1;
    int is_new = map_at(DIRECTORY, sizeof *directory);
    if (!is_new && !is_there()) return 0;
    directory = DIRECTORY;
    directory->magic = MAGIC;
    if (directory->copy_count == MAX_COPIES) return 0;
    mirror_has_copies = directory->copy_count > 0;
    for (uint64_t at = 0; at < directory->copy_count; at++) is_quick &= mirror_may_leave(directory->copies[at].leave, leave);
    copy = &directory->copies[directory->copy_count];
    *copy = (Copy){.leave = leave};
    directory->copy_count++;
    return 1;
}

int mirror_leaves(uintptr_t returns) {
    for (uint64_t at = 0; at < directory->copy_count; at++)
        if (directory->copies[at].leave == returns) return 1;
    return 0;
}

void mirror_offer(enum CopyState state, uintptr_t attach, uint64_t build) {
    if (!copy) return;
    copy->attach = attach;
    copy->build = build;
    __atomic_store_n(&copy->state, (uint64_t)state, __ATOMIC_RELEASE);
}

static int map_piece(uintptr_t piece) {
    for (uint64_t at = 0; at < directory->piece_count; at++)
        if (directory->pieces[at] == piece) return 1;
    if (directory->piece_count == MAX_PIECES || !map_at(mirror_of(piece * PIECE), PIECE)) return 0;
    directory->pieces[directory->piece_count++] = piece;
    return 1;
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
    if (thread->mirrored != UINTPTR_MAX && is_quick) thread->mirrored_span = thread->stack_high - thread->mirrored;
    pthread_mutex_unlock(&lock);
    signals_release(&before);
    return thread->mirrored <= slot;
}

/* ---- jumps of earlier recordings ---- */

static JumpTable *mine[MAX_COPIES]; /* the tables of this copy */
static int mine_count;

/* The file may have been unloaded, so the kernel reads. */
static int is_taken_back(const char *row, uint64_t original) {
    char now[COMPARED];
    struct iovec to = {now, sizeof now}, from = {*(void *const *)row, sizeof now};
    long size = syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul);
    return size != (long)sizeof now || !memcmp(now, row + original, sizeof now);
}

static void forget(JumpTable *table, uint64_t row_size) {
    munmap((void *)(uintptr_t)table->rows, table->count * row_size);
    *table = (JumpTable){0};
}

void jumps_note(const void *rows, uint64_t count, uint64_t row_size, uint64_t original) {
    JumpTable *table = directory->jumps, *end = table + MAX_JUMP_TABLES;
    for (JumpTable *old = table; old < end; old++)
        if (old->is_over && is_taken_back((const char *)(uintptr_t)old->rows, original)) forget(old, row_size);
    while (table < end && table->count) table++;
    if (!count || table == end || mine_count == MAX_COPIES) return;
    void *copy = mmap(NULL, count * row_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return;
    memcpy(copy, rows, count * row_size);
    *table = (JumpTable){(uintptr_t)copy, count, 0};
    mine[mine_count++] = table;
}

int jumps_end(uint64_t row_size, uint64_t original) {
    int left = 0;
    for (int at = 0; at < mine_count; at++) {
        JumpTable *table = mine[at];
        const char *rows = (const char *)(uintptr_t)table->rows;
        if (is_taken_back(rows, original)) forget(table, row_size);
        else mine[left++] = table;
    }
    mine_count = left;
    return !left;
}

void jumps_leave(void) {
    for (int at = 0; at < mine_count; at++) mine[at]->is_over = 1;
    mine_count = 0;
}
