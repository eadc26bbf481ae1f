#include "core/library/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/library/rows.h"
#include "core/base/ring.h"
#include "runner.h"

enum { CAPACITY = 1024 };

static void write_calls(Ring *ring, int count) {
    for (int at = 0; at < count && (ring->position < ring->limit || ring_has_room(ring)); at++) {
        *ring_next(ring) = (Event){at, 1, 1, 0, -1, at % 2 ? EVENT_EXIT : EVENT_ENTER};
        ring_publish(ring);
    }
}

static HeadRow head_of(Core *core) {
    HeadRow head = {0};
    core_export(core, TABLE_HEAD, &head, sizeof head);
    return head;
}

static void rings_are_read_and_stopped(Tally *tally, const char *path) {
    Ring ring;
    Core *core = core_open(1, MAX_DISTANCE);
    CHECK(tally, core_attach(core, path) == ENOENT);
    CHECK(tally, ring_create(&ring, path, CAPACITY) == 0 && core_attach(core, path) == 0);
    for (int turn = 0; turn < 5; turn++) {
        write_calls(&ring, CAPACITY);
        CHECK(tally, core_step(core, 1000) == 1000 && core_step(core, 1000) == CAPACITY - 1000);
    }
    CHECK(tally, head_of(core).calls == 5 * CAPACITY / 2);
    core_stop(core);
    CHECK(tally, !ring_has_room(&ring));
    ring_unmap(&ring);
    core_close(core);
}

static void tables_say_how_large_they_are(Tally *tally, const char *path) {
    Ring ring;
    Core *core = core_open(1, MAX_DISTANCE);
    CHECK(tally, ring_create(&ring, path, CAPACITY) == 0 && core_attach(core, path) == 0);
    write_calls(&ring, 11);
    while (core_step(core, 3)) continue;
    core_finish(core);
    NodeRow nodes[2] = {0};
    CHECK(tally, core_export(core, TABLE_NODES, nodes, sizeof nodes) == sizeof nodes);
    CHECK(tally, nodes[1].n == 5 && nodes[1].open == 1 && nodes[0].parent == -1);
    for (uint32_t table = 0; table < TABLES; table++)
        CHECK(tally, core_export(core, table, NULL, 0) % core_row_size(table) == 0);
    CHECK(tally, core_export(core, TABLES, NULL, 0) == 0 && core_row_size(TABLES) == 0);
    ring_unmap(&ring);
    core_close(core);
}

/* By a program that means harm: the file of a ring that is read ends, first before its records and then before its head. */
static void a_truncated_ring_is_damaged_and_the_others_are_read(Tally *tally, const char *path, const char *second) {
    for (off_t left = RING_START; left >= 0; left -= RING_START) {
        Ring hostile, fine;
        Core *core = core_open(1, MAX_DISTANCE);
        CHECK(tally, !ring_create(&hostile, path, CAPACITY) && !core_attach(core, path));
        CHECK(tally, !ring_create(&fine, second, CAPACITY) && !core_attach(core, second));
        write_calls(&hostile, 100);
        write_calls(&fine, 100);
        CHECK(tally, !truncate(path, left));
        while (core_step(core, CAPACITY)) continue;
        core_stop(core);
        core_finish(core);
        CHECK(tally, head_of(core).unread_rings == 1 && head_of(core).calls == 50);
        ring_unmap(&hostile);
        ring_unmap(&fine);
        core_close(core);
        unlink(path);
        unlink(second);
    }
}

static void write_event(Ring *ring, int64_t stamp, int64_t frame, int32_t code, int32_t kind) {
    *ring_next(ring) = (Event){stamp, frame, code, 0, -1, kind};
    ring_publish(ring);
}

/* Two generators, begun by one thread each and finished by the other: the ring that is read first must wait. */
static void generators_go_on_in_another_thread(Tally *tally, const char *path, const char *second) {
    Ring a, b;
    Core *core = core_open(1, MAX_DISTANCE);
    CHECK(tally, !ring_create(&a, path, CAPACITY) && !ring_create(&b, second, CAPACITY) && !core_attach(core, path));
    write_event(&b, 0, 1, 0, EVENT_TURN);
    write_event(&b, 1, 8, 2, EVENT_ENTER);
    write_event(&b, 2, 8, 2, EVENT_YIELD);
    write_event(&a, 0, 2, 0, EVENT_TURN);
    write_event(&a, 3, 8, 2, EVENT_RESUME); /* b is not attached yet */
    write_event(&a, 4, 8, 2, EVENT_EXIT);
    write_event(&a, 5, 9, 3, EVENT_ENTER);
    write_event(&a, 6, 9, 3, EVENT_YIELD);
    write_event(&b, 0, 3, 0, EVENT_TURN);
    write_event(&b, 7, 9, 3, EVENT_RESUME);
    write_event(&b, 8, 9, 3, EVENT_EXIT);
    CHECK(tally, core_step(core, CAPACITY) == 1 && core_awaits_ring(core) && !core_attach(core, second));
    CHECK(tally, core_step(core, CAPACITY) == 10 && !core_awaits_ring(core) && head_of(core).calls == 2);
    write_event(&a, 9, 7, 1, EVENT_RESUME); /* it began before anybody listened */
    CHECK(tally, core_step(core, CAPACITY) == 0 && core_awaits_ring(core) && core_step(core, CAPACITY) == 1);
    ring_unmap(&a);
    ring_unmap(&b);
    core_close(core);
    unlink(second);
}

/* Nobody sees the generators of a calibration suspended, whose function is 0, and nothing waits for them. */
static void generators_of_a_calibration_are_read_at_once(Tally *tally, const char *path) {
    Ring ring;
    Core *core = core_open(1, MAX_DISTANCE);
    CHECK(tally, !ring_create(&ring, path, CAPACITY) && !core_attach(core, path));
    for (int at = 0; at < CAPACITY / 2; at++) {
        write_event(&ring, 2 * at, 5, 0, EVENT_RESUME);
        write_event(&ring, 2 * at + 1, 5, 1, EVENT_YIELD);
    }
    CHECK(tally, core_step(core, CAPACITY) == CAPACITY && !core_awaits_ring(core) && head_of(core).calls == 0);
    ring_unmap(&ring);
    core_close(core);
}

void test_core(Tally *tally) {
    char folder[] = "/tmp/perflaw-unit-XXXXXX", path[64], second[64];
    CHECK(tally, mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/ring", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    rings_are_read_and_stopped(tally, path);
    unlink(path);
    a_truncated_ring_is_damaged_and_the_others_are_read(tally, path, second);
    tables_say_how_large_they_are(tally, path);
    unlink(path);
    generators_go_on_in_another_thread(tally, path, second);
    unlink(path);
    generators_of_a_calibration_are_read_at_once(tally, path);
    unlink(path);
    rmdir(folder);
}
