#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t bytes_of(uint32_t capacity) { return RING_START + (uint64_t)capacity * sizeof(Event); }

static int map(Ring *ring, int file, uint32_t capacity) {
    void *place = mmap(NULL, bytes_of(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) return errno;
    ring->head = place;
    ring->records = (Event *)((char *)place + RING_START);
    ring->mask = capacity - 1;
    return 0;
}

/* The first write to a page of a file costs a fault, which is taken here and not at an event. (MAP_POPULATE only
 * reads.) */
static void touch_pages(Ring *ring, uint32_t capacity) {
    for (uint64_t at = 0; at < bytes_of(capacity); at += RING_PAGE) ((volatile char *)ring->head)[at] = 0;
}

/* Disk space is allocated before it is mapped, so that a full disk is an error here and never a SIGBUS at a later
 * store. */
static int fill(Ring *ring, int file, uint32_t capacity) {
    int error = posix_fallocate(file, 0, (off_t)bytes_of(capacity));
    if (!error) error = map(ring, file, capacity);
    if (error) return error;
    /* A forked child must not write into its parent's ring, so it gets no mapping of it. */
    if (madvise(ring->head, bytes_of(capacity), MADV_DONTFORK)) return errno;
    touch_pages(ring, capacity);
    *ring->head = (RingHead){.magic = RING_MAGIC, .version = RING_VERSION, .capacity = capacity};
    ring->limit = capacity;
    return 0;
}

const char *ring_obstacle(int error) {
    if (error == EMFILE || error == ENFILE) return "the program has used up its file descriptors (ulimit -n)";
    if (error == ENOMEM) return "the program may have no more memory (ulimit -v)";
    if (error == EFBIG) return "the program may write no file so large (ulimit -f)";
    if (error == ENOSPC) return "cannot write to the spool: the disk is full";
    return "cannot write to the spool: is the disk full?";
}

int ring_create(Ring *ring, const char *path, uint32_t capacity) {
    char part[4096];
    *ring = (Ring){0};
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part) return ENAMETOOLONG;
    int file = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    int error = fill(ring, file, capacity);
    close(file);
    if (!error && rename(part, path)) error = errno;
    if (error) {
        unlink(part);
        ring_unmap(ring);
    }
    return error;
}

int ring_has_room(Ring *ring) {
    if (__atomic_load_n(&ring->head->stop, __ATOMIC_RELAXED)) return 0;
    ring->limit = __atomic_load_n(&ring->head->read, __ATOMIC_ACQUIRE) + ring->mask + 1;
    return ring->position < ring->limit;
}

/* ---- waiting, where the ring is full ---- */

static const int64_t TIMEOUT_NS = 10000000000, PAUSE_NS = 50000, MAX_PAUSE_NS = 1000000;
enum { ENOUGH = 4 }; /* so much of the ring has to be free: each wait costs the program some 20 us of CPU time */

static int is_alive(int reader) { return !reader || !kill(reader, 0) || errno == EPERM; }

const char *ring_wait(Ring *ring, int reader) {
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int64_t waited = 0; waited < TIMEOUT_NS && is_alive(reader); waited += pause.tv_nsec) {
        if (__atomic_load_n(&ring->head->stop, __ATOMIC_RELAXED)) return "the recorder asked to stop";
        if (ring_has_room(ring) && ring->limit - ring->position > ring->mask / ENOUGH) return NULL;
        if (pause.tv_nsec < waited / 4 && pause.tv_nsec < MAX_PAUSE_NS) pause.tv_nsec += PAUSE_NS;
        nanosleep(&pause, NULL);
    }
    return "the recorder does not keep up or has gone";
}

/* ---- the reader's end ---- */

/* Whether this is the head of a ring of this version, in a file of this size. */
static int is_valid(const RingHead *head, uint64_t size) {
    uint32_t capacity = head->capacity;
    return head->magic == RING_MAGIC && head->version == RING_VERSION && capacity && !(capacity & (capacity - 1)) &&
           bytes_of(capacity) <= size;
}

static int attach(Ring *ring, int file) {
    RingHead head;
    struct stat about;
    if (fstat(file, &about)) return errno;
    if (pread(file, &head, sizeof head, 0) != sizeof head || !is_valid(&head, (uint64_t)about.st_size)) return EPROTO;
    int error = map(ring, file, head.capacity);
    if (!error) ring->position = head.read;
    return error;
}

int ring_attach(Ring *ring, const char *path) {
    *ring = (Ring){0};
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return errno;
    int error = attach(ring, file);
    close(file);
    return error;
}

size_t ring_peek(Ring *ring, const Event **first) {
    uint64_t written = __atomic_load_n(&ring->head->written, __ATOMIC_ACQUIRE), at = ring->position & ring->mask;
    uint64_t unread = written - ring->position, side_by_side = ring->mask + 1 - at;
    if (unread > (uint64_t)ring->mask + 1) {
        ring->is_damaged = 1;
        ring_stop(ring);
    }
    if (ring->is_damaged) return 0;
    *first = &ring->records[at];
    return unread < side_by_side ? unread : side_by_side;
}

void ring_release(Ring *ring, size_t count) {
    ring->position += count;
    __atomic_store_n(&ring->head->read, ring->position, __ATOMIC_RELEASE);
}

void ring_stop(Ring *ring) { __atomic_store_n(&ring->head->stop, 1, __ATOMIC_RELAXED); }

int ring_replace(Ring *ring, const char *address) {
    uint64_t size = bytes_of(ring->mask + 1);
    const char *first = (const char *)ring->head;
    if (!first || address < first || address >= first + size) return 0;
    if (mmap(ring->head, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) return 0;
    ring->is_damaged = 1;
    return 1;
}

void ring_unmap(Ring *ring) {
    if (ring->head) munmap(ring->head, bytes_of(ring->mask + 1));
    *ring = (Ring){0};
}
