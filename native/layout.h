/* Everything that lies in an arena file, defined once. Another process reads the file after the writer was killed, so:
 * offsets instead of pointers; an item is complete before the count or offset that makes it visible is stored.
 *
 *     | Header | blocks: grids, tables, rows, bags, samples ... | space not used yet |
 *     0        sizeof(Header)                                   used                 size
 *
 * Change anything here and LAYOUT_VERSION goes up: readers refuse what they do not know.
 */
#ifndef PERFLAW_LAYOUT_H
#define PERFLAW_LAYOUT_H

#include <stdint.h>

#define LAYOUT_MAGIC 0x314c574146524550ull /* "PERFAWL1" */
#define LAYOUT_VERSION 1u

enum { EVENT_ENTER = 1, EVENT_EXIT, EVENT_YIELD, EVENT_RESUME, EVENT_FEATURE, EVENT_DEAD };
enum { ROOT = 0, LOCAL = -1, OTHER = -2 };
enum { MAX_DISTANCE = 16, MAX_KIDS_APART = 64, UNIFORM = 512, PER_STRATUM = 32, MAX_CODE = 1 << 20 };
enum { ARENA_CLASSES = 160, GRID_CHUNKS = 26, STRATA = 65, LOG_BUCKETS = 65 * 4 };

typedef uint64_t Offset;        /* bytes from the start of the file; 0 = nothing there */
typedef unsigned __int128 Sum;  /* exact; two's complement where a cost can be negative */

/* The record of an event: the same 32 bytes as collect/layout.py. */
typedef struct Event {
    int64_t value, frame;
    int32_t code, site, key, kind;
} Event;

/* An array whose items never move: chunk k holds 64 << k items. */
typedef struct Grid {
    Offset chunks[GRID_CHUNKS];
    uint32_t count, item;
} Grid;

/* Open addressing, three words to one; value 0 marks an empty slot. */
typedef struct Slot {
    uint32_t a, b, c, value;
} Slot;
typedef struct Table {
    Offset slots;
    uint32_t capacity, used;
} Table;

/* Head of a growing row of equal items; the items follow it. */
typedef struct Row {
    uint32_t count, capacity;
    uint64_t unused;
} Row;
typedef struct Pair {
    int32_t i, j;
    uint64_t unused;
    Sum sum_yy;
} Pair;
/* Nearly always K is 1, so what several calls add is kept apart and one call costs little (dump.c puts it together):
 * n_more counts K != 1; more_k, more_kk and more_ky are the sums of K - 1, K * K - 1 and (K - 1) * Y. */
typedef struct Link {
    int32_t node, unused;
    uint64_t n, n_more, more_k;
    Sum sum_y, sum_yy, sum_yx, more_kk, more_ky;
} Link;
typedef struct Feature {
    int64_t number, bits; /* bits of the float64 */
} Feature;

/* What an invocation touched: node -> cost and calls, in order of first touch. Beyond 16 items an index follows them. */
typedef struct Touch {
    int32_t node, depth;
    uint64_t calls;
    int64_t cost;
} Touch;
typedef struct Bag {
    uint32_t count, capacity;
    Touch items[];
} Bag;

/* Counts of the buckets [low, low + length) of a log histogram. */
typedef struct Window {
    uint32_t low, length;
    uint64_t counts[];
} Window;

typedef struct Waits {
    uint64_t n;
    int64_t least, most;
    uint64_t unused;
    Sum sum_w, sum_ww;
} Waits;

/* A calling context. n is stored last of all that one invocation adds. */
typedef struct Node {
    int32_t parent, site, code, depth;
    uint64_t n, open;
    int64_t min_x, max_x;
    Sum sum_x, sum_xx, local_xx; /* local_xx: the pair (LOCAL, LOCAL), apart because leaves have no other */
    uint32_t local_seen, number;
    Offset histogram, pairs, links, waits;
    Offset hot_child, sums; /* the Node called last from here; the Code of this function */
} Node;

/* An execution that has not ended, a block of its own. Its bags stay with it when it goes back to the pool. */
typedef struct Invocation {
    int64_t frame, started, segment, x, waited;
    int32_t code, node, slot, key;
    uint64_t fresh;
    Offset place, kids, deeper, features, next_free; /* place: the Node of number node */
} Invocation;

typedef struct Thread {
    int64_t number;
    uint32_t height, capacity;
    Offset stack;    /* Offset[capacity]: invocations, outermost first */
    Offset depth_of; /* int32_t[codes]: open invocations on this thread by code */
    uint64_t codes;
} Thread;

/* One kept invocation. sequence stands first: freeing overwrites it, so that a reader knows a stale reference. */
typedef struct Sample {
    uint64_t sequence;
    int64_t started, x;
    int32_t node, key;
    uint32_t references, kids, features, unused;
} Sample; /* Touch[kids] and Feature[features] follow */

typedef struct Ticket {
    uint64_t key, sequence;
    Offset sample;
} Ticket;
typedef struct Bottom {
    uint64_t offered, bound;
    uint32_t size, kept, capacity, unused;
    Offset heap; /* Ticket[capacity], largest (key, sequence) first */
} Bottom;
typedef struct Reservoir {
    Bottom uniform;
    Offset strata[STRATA]; /* Bottom, by bit length of the cost */
} Reservoir;

typedef struct Code {
    Sum total, self;
    Offset reservoir;
    uint64_t unused;
} Code;

typedef struct Tree {
    uint64_t seed, calls, lost;
    int64_t first, last;
    uint32_t seen, max_distance, unused, busy; /* busy: 1 + the node that an invocation is being added to */
    Offset free_invocation;
    Grid nodes, codes, threads;
    Table children, pair_index, link_index;
    Table suspended; /* frame -> Offset of its Invocation in units of 16 bytes */
} Tree;

typedef struct Header {
    uint64_t magic;
    uint32_t version, size_of_header;
    uint64_t used, size;
    uint32_t full, unused; /* full: errno of the first allocation that was refused; nothing is recorded from then on */
    Offset free[ARENA_CLASSES];
    Tree tree;
} Header;

_Static_assert(sizeof(Event) == 32, "the record of collect/layout.py");
_Static_assert(sizeof(Link) % 16 == 0 && sizeof(Pair) % 16 == 0 && sizeof(Node) % 16 == 0, "sums are aligned");

#endif
