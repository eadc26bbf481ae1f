/* A ring of event records in a shared file: one thread of the target writes, one recorder reads.
 *
 * The writer never waits for the reader but when the ring is full, and what it wrote survives its death. Record i lies
 * at i & (capacity - 1); a record is complete before `written` counts it.
 *
 *     | RingHead, RING_START bytes | Event 0 | Event 1 | ...                 Event[capacity - 1] |
 *
 * Ownership: a Ring is its opener's; the file belongs to the spool. Threads: one writer, one reader.
 * Cost: ring_write about 2 ns; a new ring is a file, an allocation on disk and a mapping, 100 us and more.
 */
#ifndef PERFLAW_RING_H
#define PERFLAW_RING_H

#include <stddef.h>

#include "record.h"

enum { RING_START = 4096, RING_PAGE = 4096, RING_VERSION = 1 };
#define RING_MAGIC 0x31474e4952465250ull /* "PRFRING1" */

typedef struct RingHead {
    uint64_t magic;
    uint32_t version, capacity; /* records, a power of two */
    _Alignas(64) uint64_t written;
    _Alignas(64) uint64_t read;
    _Alignas(64) uint32_t stop; /* the reader asks the writer to write no more */
} RingHead;

typedef struct Ring {
    RingHead *head;
    Event *records;
    uint64_t position, limit; /* writer: records written, and how far it may write before it looks at `read` again */
    uint32_t mask;
} Ring;

/* ---- the writer's end ---- */

/* Make the file at path (by way of path.part, so that readers see whole rings only). 0 or errno. */
int ring_create(Ring *ring, const char *path, uint32_t capacity);
/* Room for one more record: looks how far the reader has come. 0 if there is none, or the reader asked to stop. */
int ring_has_room(Ring *ring);

/* Wait for room while process `reader` lives (0: not known), at most ten seconds. NULL when there is some, else why not. */
const char *ring_wait(Ring *ring, int reader);

/* The next record goes here; ring_publish makes it visible. Only while position < limit. */
static inline Event *ring_next(const Ring *ring) { return &ring->records[ring->position & ring->mask]; }
static inline void ring_publish(Ring *ring) {
    __atomic_store_n(&ring->head->written, ++ring->position, __ATOMIC_RELEASE);
}

/* ---- the reader's end ---- */

/* Map an existing ring. 0 or errno; EPROTO if it is no ring of this version. */
int ring_attach(Ring *ring, const char *path);
/* Records not read yet that lie side by side, and where; 0 if there are none. */
size_t ring_peek(Ring *ring, const Event **first);
/* Give the room of the first `count` of them back to the writer. */
void ring_release(Ring *ring, size_t count);
/* Ask the writer to write no more. */
void ring_stop(Ring *ring);

/* Unmap, at either end; the file stays. */
void ring_forget(Ring *ring);

#endif
