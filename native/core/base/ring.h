/* A ring of event records in a shared file: one thread of the target writes, one recorder reads.
 *
 * The writer waits for the reader only if the ring is full, and what it wrote survives its death. Record i is at i &
 * (capacity - 1); a record is complete before `written` counts it.
 *
 *     | RingHead, RING_START bytes | Event 0 | Event 1 | ...                 Event[capacity - 1] |
 *
 * Ownership: a Ring belongs to whoever opened it, the file to the spool. Threads: one writer, one reader. Cost: a
 * record takes about 2 ns; a new ring is a file, an allocation on disk and a mapping, 100 us and more.
 */
#ifndef PERFLAW_RING_H
#define PERFLAW_RING_H

#include <stddef.h>

#include "record.h"

enum { RING_START = 4096, RING_PAGE = 4096, RING_VERSION = 1 };
#define RING_MAGIC 0x31474e4952465250ull /* "PRFRING1" */

typedef struct RingHead {
    uint64_t magic;
    uint32_t version, capacity; /* capacity: of records, a power of two */
    _Alignas(64) uint64_t written;
    _Alignas(64) uint64_t read;
    _Alignas(64) uint32_t stop; /* the reader asks the writer to write no more */
} RingHead;

typedef struct Ring {
    RingHead *head;
    Event *records;
    uint64_t position; /* records written or read so far */
    uint64_t limit;    /* the writer may write up to here before it looks at `read` again */
    uint32_t mask;
    int is_damaged; /* the head says what cannot be: the reader reads no more of it */
} Ring;

/* ---- the writer's end ---- */

/* Create the file of a ring. It appears under its path only when it is whole (it is `path`.part before). 0 or errno. */
int ring_create(Ring *ring, const char *path, uint32_t capacity);
/* Why the spool cannot be written, in words for the person who records. */
const char *ring_obstacle(int error);
/* Whether there is room for one more record, by how far the reader has come. 0 too if the reader asked to stop. */
int ring_has_room(Ring *ring);
/* Wait until a quarter of the ring is free, for at most ten seconds, while process `reader` lives (0: it is not known). NULL when there is room,
 * else why there is none. */
const char *ring_wait(Ring *ring, int reader);

/* Where the next record goes, only while position < limit; ring_publish makes it visible. */
static inline Event *ring_next(const Ring *ring) { return &ring->records[ring->position & ring->mask]; }
static inline void ring_publish(Ring *ring) {
    __atomic_store_n(&ring->head->written, ++ring->position, __ATOMIC_RELEASE);
}

/* ---- the reader's end ---- */

/* Map an existing ring. 0 or errno; EPROTO if it is no ring of this version. */
int ring_attach(Ring *ring, const char *path);
/* How many unread records lie side by side, and where the first is; 0 if there are none. The program may have written
 * anything over the head: if it says that more are unread than the ring holds, or fewer than none, the ring is damaged,
 * and the writer is asked to write no more. */
size_t ring_peek(Ring *ring, const Event **first);
/* Give the room of the first `count` unread records back to the writer. */
void ring_release(Ring *ring, size_t count);
/* Ask the writer to write no more. */
void ring_stop(Ring *ring);
/* If an address lies in this ring, put memory of our own in the place of its file, and mark it as damaged. Whether that is so. For
 * a handler of signals: only system calls are made. */
int ring_replace(Ring *ring, const char *address);

/* Unmap the ring, at either end; the file stays. */
void ring_unmap(Ring *ring);

#endif
