/* ns an event of the tree alone, and what it takes in memory: chains of calls, a program-like tree, and a hostile one.
 * Chains also as a stored stream, which the recorder's core reads from a ring. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/library/calltree.h"
#include "core/base/clock.h"
#include "core/library/core.h"
#include "core/base/ring.h"

enum { ROUNDS = 1000, TURNS = 20, STORED = 1 << 17, RECORDS = 2000 };
enum { FUNCTIONS = 1000, DEPTH = 50, TRUNK = 25, CONTEXTS = 10000, CHILDREN = 20 };
static const uint64_t MEMORY = 2ull << 30;

/* The linear congruential generator of Knuth's MMIX. */
static uint64_t draw(uint64_t *chance) {
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    return *chance >> 33;
}

static Tree *begun(EventSource *source, uint32_t distance) {
    Tree *tree = malloc(sizeof(Tree));
    if (!tree || calltree_begin(tree, 0, distance, MEMORY)) exit(1);
    *source = (EventSource){0};
    return tree;
}

/* ---- chains ---- */

/* Calls down to a depth and back, time and again, as they lie in a ring; how many records. */
static int chain(Event *events, int depth) {
    int64_t now = 0;
    Event *to = events;
    while (to + 2 * depth <= events + RECORDS) {
        for (int at = 1; at <= depth; at++) *to++ = (Event){now += 10 + (at & 3), at, at, at, -1, EVENT_ENTER};
        for (int at = depth; at; at--) *to++ = (Event){now += 20, at, at, -1, -1, EVENT_EXIT};
    }
    return (int)(to - events);
}

/* The least of many short rounds: of a machine that others use as well it is what the program itself takes. */
static void chains(int depth, uint32_t distance) {
    static Event events[RECORDS];
    EventSource source;
    Tree *tree = begun(&source, distance);
    int count = chain(events, depth);
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = clock_plain_ns();
        for (int turn = 0; turn < TURNS; turn++)
            for (int at = 0; at < count; at++) calltree_feed(tree, &source, &events[at]);
        double passed = (double)(clock_plain_ns() - start) / ((double)TURNS * count);
        least = passed < least ? passed : least;
    }
    calltree_destroy(tree);
    free(tree);
    printf("chain, depth %2d: %6.1f ns an event, links %s\n", depth, least, distance ? "on" : "off");
}

/* ---- a stored stream ---- */

/* Write chains until the ring is full; how many records. */
static uint64_t store(Ring *ring, const Event *events, int count) {
    uint64_t stored = 0;
    while (ring_has_room(ring)) {
        *ring_next(ring) = events[stored++ % (uint64_t)count];
        ring_publish(ring);
    }
    return stored;
}

static void stored(int depth) {
    static Event events[RECORDS];
    int count = chain(events, depth);
    char path[] = "/tmp/perflaw-bench-XXXXXX/0001.ring", *folder = path;
    path[25] = 0;
    if (!mkdtemp(folder)) exit(1);
    path[25] = '/';
    Ring ring;
    Core *core = core_open(0, MAX_DISTANCE);
    if (!core || ring_create(&ring, path, STORED) || core_attach(core, path)) exit(1);
    double least = 1e9;
    for (int round = 0; round < 300; round++) {
        uint64_t records = store(&ring, events, count);
        int64_t start = clock_plain_ns();
        while (core_step(core, records)) {}
        double passed = (double)(clock_plain_ns() - start) / (double)records;
        least = passed < least ? passed : least;
    }
    printf("stored chains, depth %2d: %.1f ns an event, %.1f million events a second\n", depth, least, 1e3 / least);
    core_close(core);
    ring_unmap(&ring);
    unlink(path);
    path[25] = 0;
    rmdir(folder);
}

/* ---- churn: random calls, every other one a candidate for the sample ---- */

typedef struct Context {
    uint32_t depth, count;
    int32_t children[CHILDREN];
} Context;
typedef struct Walk {
    Tree *tree;
    EventSource source;
    int64_t now;
    uint64_t chance;
    uint32_t height, called;
    int32_t context[DEPTH + 2];
    Context contexts[CONTEXTS];
} Walk;

static void go(Walk *walk, int32_t code, int32_t site) {
    int32_t key = draw(&walk->chance) & 1 ? (int32_t)(draw(&walk->chance) & INT32_MAX) : -1;
    walk->height++;
    walk->called++;
    walk->now += (int64_t)(draw(&walk->chance) & 255);
    calltree_feed(walk->tree, &walk->source, &(Event){walk->now, walk->height, code, site, key, EVENT_ENTER});
}

static void back(Walk *walk) {
    walk->now += (int64_t)(draw(&walk->chance) & 255);
    calltree_feed(walk->tree, &walk->source, &(Event){walk->now, walk->height--, 1, -1, -1, EVENT_EXIT});
}

/* As in a program, which calls in many contexts but not in any: a trunk, and a tree of them above it, drawn
 * beforehand. */
static void draw_program(Walk *walk) {
    Context *contexts = walk->contexts;
    for (int32_t at = 1; at < CONTEXTS; at++) {
        int32_t chosen = at <= TRUNK ? at - 1 : TRUNK + (int32_t)(draw(&walk->chance) % (uint64_t)(at - TRUNK));
        while (contexts[chosen].depth == DEPTH || contexts[chosen].count == CHILDREN) chosen++;
        Context *parent = &contexts[chosen];
        contexts[at].depth = parent->depth + 1;
        parent->children[parent->count++] = at;
    }
}

/* Down the trunk and seldom back; above it calls and returns in turn. */
static void program_step(Walk *walk) {
    const Context *top = &walk->contexts[walk->context[walk->height]];
    uint64_t die = draw(&walk->chance), chance = walk->height > TRUNK ? 2 : 1024;
    if (walk->height && (!top->count || die % chance == 0)) {
        back(walk);
        return;
    }
    int32_t child = top->children[(die >> 10) % top->count];
    go(walk, child % FUNCTIONS + 1, child);
    walk->context[walk->height] = child;
}

/* Each function calls any of four at random: as many contexts as there are calls. */
static void hostile_step(Walk *walk) {
    if (walk->height == DEPTH || (walk->height && draw(&walk->chance) & 1)) back(walk);
    else go(walk, (int32_t)((walk->height * 20 + (draw(&walk->chance) & 3)) % FUNCTIONS + 1), 0);
}

static void churn(const char *name, void (*step)(Walk *), uint32_t calls) {
    static Walk walk;
    walk = (Walk){.chance = 1};
    draw_program(&walk);
    walk.tree = begun(&walk.source, MAX_DISTANCE);
    int64_t start = clock_plain_ns();
    while (walk.called < calls) step(&walk);
    double passed = (double)(clock_plain_ns() - start) / (2.0 * calls);
    printf("%s, %u calls: %.1f ns an event, %u nodes, %u links, %u pairs, %lu folded, %.1f MB\n", name, calls, passed,
           walk.tree->nodes.count - 1, walk.tree->link_count, walk.tree->pair_count, (unsigned long)walk.tree->folded,
           (double)walk.tree->arena.used / 1e6);
    calltree_destroy(walk.tree);
    free(walk.tree);
}

int main(void) {
    for (int depth = 5; depth <= 50; depth *= 10)
        for (uint32_t distance = 0; distance <= MAX_DISTANCE; distance += MAX_DISTANCE) chains(depth, distance);
    for (int depth = 5; depth <= 50; depth *= 10) stored(depth);
    churn("program", program_step, 1000000);
    churn("program", program_step, 10000000);
    churn("hostile", hostile_step, 1000000);
    churn("hostile", hostile_step, 10000000);
    return 0;
}
