#include "core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calltree.h"
#include "core/base/cpu.h"
#include "core/base/filters.h"
#include "core/paths/paths.h"
#include "core/tree/repeats.h"
#include "export.h"
#include "guard.h"
#include "order.h"

#define EXPORTED __attribute__((visibility("default")))

enum { BATCH = 256 };
static const uint64_t MEMORY = 2ull << 30; /* the usual limits take a quarter of it; the rest is for hostile programs */

struct Core {
    Tree tree;
    Feeds feeds;
    uint32_t next;      /* index of the ring whose turn it is */
    Event batch[BATCH]; /* a copy of records, which their writer could change between two looks at them */
};

EXPORTED Core *core_open(uint64_t seed, uint32_t max_distance) {
    Core *core = calloc(1, sizeof(Core));
    if (core && !calltree_begin(&core->tree, seed, max_distance, MEMORY)) return core;
    free(core);
    return NULL;
}

EXPORTED void core_limits(Core *core, uint32_t nodes, uint32_t links, uint32_t pairs, uint32_t components, uint32_t spans) {
    core->tree.limits = (Limits){nodes, links, pairs, components, spans};
}

EXPORTED int core_attach(Core *core, const char *path) {
    Feeds *feeds = &core->feeds;
    Feed *larger = realloc(feeds->feed, (feeds->count + 1) * sizeof(Feed));
    if (!larger) return ENOMEM;
    feeds->feed = larger;
    Feed *feed = &larger[feeds->count];
    *feed = (Feed){.source.number = feeds->count};
    int error = ring_attach(&feed->ring, path);
    /* The program may have removed it, and what lacks here may be there when it is tried again; else it is damaged. */
    int is_passing = error == ENOENT || error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN;
    if (!error) guard_start();
    if (!error) feeds->count++;
    else if (!is_passing) core->tree.unread_rings++;
    return error;
}

Tree *core_tree(Core *core) { return &core->tree; }

EXPORTED void core_metrics(Core *core, uint32_t count) {
    if (count > MAX_LANES) count = MAX_LANES;
    if (count > core->tree.lane_count) core->tree.lane_count = count;
}

EXPORTED int core_paths(Core *core, uint32_t clocks, uint64_t bytes) {
    return paths_begin(&core->tree, clocks < PATH_CLOCKS ? 1 : PATH_CLOCKS, bytes) ? 0 : ENOMEM;
}

/* Take the records that lie side by side in a ring and whose turn has come, at most a batch and `max`. Gives how
 * many there were. */
static uint64_t take(Core *core, Feed *feed, uint64_t max) {
    const Event *first;
    uint64_t ready = ring_peek(&feed->ring, &first), count = ready, at = 0;
    if (count > BATCH) count = BATCH;
    if (count > max) count = max;
    feed_reset(&core->feeds, feed);
    memcpy(core->batch, first, count * sizeof(Event));
    if (feed->ring.is_damaged) return 0; /* by this look */
    for (Event *event = core->batch; at < count; at++, event++) {
        if (at + BATCH < ready) __builtin_prefetch(&first[at + BATCH]); /* the next batch is in the writer's cache */
        if (order_matters(&core->feeds, &core->tree, event) && !order_allows(&core->feeds, feed, &core->tree, event)) break;
        calltree_feed(&core->tree, &feed->source, event);
    }
    ring_release(&feed->ring, at);
    return at;
}

/* A ring that gave less than a batch is left alone for this step: a reader right behind the writer takes the cache
 * lines away from it, so that every record costs the writer twice as much. But if one ring waits for another, both
 * go on. */
EXPORTED uint64_t core_step(Core *core, uint64_t max) {
    Feeds *feeds = &core->feeds;
    uint64_t taken = 0;
    feeds->step++;
    guard_enter(feeds);
    for (uint32_t idle = 0; taken < max && idle < feeds->count; core->next++) {
        if (core->next >= feeds->count) core->next = 0;
        uint64_t count = take(core, &feeds->feed[core->next], max - taken);
        idle = count == BATCH || (count && feeds->waiting) ? 0 : idle + 1;
        taken += count;
    }
    guard_leave();
    return taken;
}

EXPORTED int core_awaits_ring(const Core *core) {
    for (uint32_t at = 0; at < core->feeds.count; at++)
        if (core->feeds.feed[at].awaited_in) return 1;
    return 0;
}

EXPORTED void core_stop(Core *core) {
    guard_enter(&core->feeds);
    for (uint32_t at = 0; at < core->feeds.count; at++) ring_stop(&core->feeds.feed[at].ring);
    guard_leave();
}

EXPORTED void core_detach(Core *core) {
    for (uint32_t at = 0; at < core->feeds.count; at++) {
        calltree_end(&core->tree, &core->feeds.feed[at].source);
        core->tree.unread_rings += (uint64_t)core->feeds.feed[at].ring.is_damaged;
        ring_unmap(&core->feeds.feed[at].ring);
    }
    core->feeds.count = core->feeds.waiting = 0;
}

EXPORTED void core_finish(Core *core) {
    core_detach(core);
    calltree_finish(&core->tree);
    paths_finish(&core->tree);
}

EXPORTED size_t core_export(Core *core, uint32_t table, void *buffer, size_t size) {
    repeats_settle(&core->tree);
    return export_table(&core->tree, table, buffer, size);
}

EXPORTED size_t core_row_size(uint32_t table) { return export_row_size(table); }

#define FIELD(name, offset, size) #name " " #offset " " #size "\n"
_Static_assert(offsetof(Event, value) == 0 && offsetof(Event, frame) == 8 && offsetof(Event, code) == 16 &&
               offsetof(Event, site) == 20 && offsetof(Event, key) == 24 && offsetof(Event, kind) == 28,
               "as core_event_layout gives them");
EXPORTED const char *core_event_layout(void) {
    return FIELD(value, 0, 8) FIELD(frame, 8, 8) FIELD(code, 16, 4) FIELD(site, 20, 4) FIELD(key, 24, 4) FIELD(kind, 28, 4);
}

EXPORTED void core_close(Core *core) {
    core_detach(core);
    calltree_destroy(&core->tree);
    free(core->feeds.feed);
    free(core);
}

EXPORTED const char *core_clock_source(const char *which) {
    Clock clock;
    Cpu cpu;
    const char *source = clock_start(&clock);
    return strcmp(which, "cpu") ? source : cpu_start(&cpu, &clock);
}

EXPORTED const char *core_filter_obstacle(const void *program, size_t count) { return filter_obstacle(program, count); }

EXPORTED uint32_t core_filter_action(const void *program, size_t count, int number, const uint64_t *arguments) {
    return filter_action(program, count, number, arguments);
}

EXPORTED double core_clock_step(void) {
    Clock clock;
    clock_start(&clock);
    return clock_step_ns(&clock);
}
