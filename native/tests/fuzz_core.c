/* What a program may write into its rings, for libFuzzer: two rings are written and read, and all tables are taken.
 *
 * The first byte of the input says how the rest is meant: as records that mostly make sense, eight bytes each, so that
 * calls are deep and threads exchange generators; as records of any content; or as the head of a ring. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/ring.h"
#include "core/library/core.h"
#include "core/library/rows.h"

enum { RINGS = 2, CAPACITY = 256, MOST = 4096 };
enum { SENSIBLE, RAW, HEAD };

static char folder[] = "/dev/shm/perflaw-fuzz-XXXXXX", paths[RINGS][64];
static Ring rings[RINGS];

static void remove_files(void) {
    for (int at = 0; at < RINGS; at++) unlink(paths[at]);
    rmdir(folder);
}

static void begin(void) {
    if (!mkdtemp(folder)) abort();
    for (int at = 0; at < RINGS; at++) {
        snprintf(paths[at], sizeof paths[at], "%s/%d.ring", folder, at);
        if (ring_create(&rings[at], paths[at], CAPACITY)) abort();
    }
    atexit(remove_files);
}

/* Rings as they are when a thread begins. */
static void empty(Ring *ring) {
    *ring->head = (RingHead){.magic = RING_MAGIC, .version = RING_VERSION, .capacity = CAPACITY};
    ring->position = 0;
    ring->limit = CAPACITY;
}

/* A record of eight bytes: few functions, frames that follow each other, and a clock that goes on. */
static Event sensible(const uint8_t *bytes, int64_t *clock) {
    static const int64_t large[] = {0, 1, -1, 1ll << 40, INT64_MAX, INT64_MIN, 1ll << 62, -2};
    *clock = (int64_t)((uint64_t)*clock + (uint64_t)(bytes[1] & 0x80 ? large[bytes[1] & 7] / 4 : bytes[1]));
    int kind = bytes[0] & 15;
    int is_stamped = kind != EVENT_FEATURE && kind != EVENT_CHANGE && kind != EVENT_THREAD && kind != EVENT_TURN;
    int64_t value = is_stamped ? *clock : bytes[6] & 0x80 ? large[bytes[6] & 7] : bytes[6];
    int32_t code = bytes[3] & 0x80 ? (int32_t)large[bytes[3] & 7] : bytes[3] & 31;
    return (Event){value, bytes[2] & 15, code, (int8_t)bytes[4], (int8_t)bytes[5], kind};
}

/* Write the records of an input by turns into the rings, and read whenever one is full. */
static void play(Core *core, int mode, const uint8_t *data, size_t size) {
    size_t each = mode == RAW ? sizeof(Event) : 8;
    int64_t clock = 0;
    for (size_t at = 0; at + each <= size; at += each) {
        Event event;
        if (mode == RAW) memcpy(&event, data + at, sizeof event);
        else event = sensible(data + at, &clock);
        Ring *ring = &rings[mode == RAW ? event.key & 1 : data[at + 7] & 1];
        if (ring->position == ring->limit && !ring_has_room(ring)) {
            core_step(core, CAPACITY);
            if (!ring_has_room(ring)) continue; /* it waits for the other ring */
        }
        *ring_next(ring) = event;
        ring_publish(ring);
    }
}

/* All tables, in memory of exactly their size. */
static void take_tables(Core *core) {
    for (uint32_t table = 0; table < TABLES; table++) {
        size_t size = core_export(core, table, NULL, 0);
        void *buffer = malloc(size);
        if (size && (!buffer || core_export(core, table, buffer, size) != size)) abort();
        free(buffer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!*folder || !rings[0].head) begin();
    if (size < 4 || size > MOST) return -1;
    int mode = data[0] % 3;
    for (int at = 0; at < RINGS; at++) empty(&rings[at]);
    Core *core = core_open(data[1], data[1] % (2 + MAX_DISTANCE));
    if (!core) return 0;
    core_metrics(core, data[2] % 40);
    if (data[2] & 0x80) core_limits(core, 1 + data[3] % 16, data[3] % 8, data[3] % 8, data[3] % 4, data[3] % 8);
    if (data[2] & 0x40) core_paths(core, data[3], data[3] & 1 ? 1 << 12 : 1 << 20);
    if (mode == HEAD) /* the head as it is found when the ring is attached */
        memcpy(rings[1].head, data + 4, size - 4 < sizeof(RingHead) ? size - 4 : sizeof(RingHead));
    for (int at = 0; at < RINGS; at++) core_attach(core, paths[at]);
    if (mode != HEAD) play(core, mode, data + 4, size - 4);
    else if (size - 4 > sizeof(RingHead)) { /* and as the program changes it later */
        memcpy((char *)rings[1].head + 64, data + 4 + sizeof(RingHead),
               size - 4 - sizeof(RingHead) < 192 ? size - 4 - sizeof(RingHead) : 192);
    }
    for (int step = 0; step < 64 && (core_step(core, CAPACITY) || core_awaits_ring(core)); step++) continue;
    core_stop(core);
    core_finish(core);
    take_tables(core);
    core_close(core);
    return 0;
}
