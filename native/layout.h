/* What the call tree consists of. All of it lies in one arena and refers to each other by plain pointers.
 *
 *     Tree -- nodes: Node -- links: Link, pairs: Pair, lanes: NodeLane ...
 *          \- codes: Code -- reservoir: Bottom -- Sample
 *          \- Source -- Stack -- Frame -- bags: Touch
 *
 * A lane is a metric. Time and events are counted for every call. Any other lane is a list of cells that hang only where
 * something of it was seen, so that an absent lane costs nothing; CPU time is such a lane: time less what was off it.
 */
#ifndef PERFLAW_LAYOUT_H
#define PERFLAW_LAYOUT_H

#include "arena.h"
#include "exact.h"
#include "grid.h"
#include "record.h"
#include "table.h"

enum { ROOT = 0, LOCAL = -1, OTHER = -2, ELSEWHERE = -2 }; /* ELSEWHERE: site of the node for contexts beyond the bound */
enum { MAX_DISTANCE = 16, MAX_KIDS_APART = 64, MAX_LANES = 32 };
enum { UNIFORM = 512, PER_STRATUM = 32, FEWER = 4, STRATA = 65 };
enum { PLAIN, RESUMED, ASIDE };
enum { CHAIN_MORE = 7 };

/* ---- cells of the lanes that not every call has something of; each begins with a Lane ---- */

typedef struct Lane {
    struct Lane *next;
    uint64_t metric;
} Lane;
typedef struct Change {
    Lane lane;
    int64_t value; /* METRIC_CPU: ns off the CPU */
} Change;
/* Over the n invocations that have a cell, less what their time gives where the lane is METRIC_CPU. */
typedef struct NodeLane {
    Lane lane;
    uint64_t n;
    Extremes cost, time;
    Sum x, xx;
} NodeLane;
typedef struct PairLane {
    Lane lane;
    Sum yy;
} PairLane;
typedef struct LinkSums {
    Sum ky, y, yy, yx;
} LinkSums;
typedef struct LinkLane {
    Lane lane;
    LinkSums sums;
} LinkLane;
typedef struct CodeLane {
    Lane lane;
    Sum total, self;
} CodeLane;

/* ---- sums of a node ---- */

typedef struct Pair {
    int32_t i, j;
    Lane *lanes; /* PairLane */
    Sum time, events;
} Pair;

/* Nearly always a descendant has as many calls and events in an ancestor's next invocation as in the one before. So a
 * link counts such a run, and what follows from it is added to Settled at its end. Sums of products of times are of 64
 * bits here, and move to Settled before they overflow: a link and call is 48 bytes and three stores, two of them double. */
typedef struct Link {
    int32_t node;
    uint32_t repeats, calls, events; /* of the run, and the K and Y of each of its invocations */
    int64_t time;                    /* sum of Y over the run */
    uint64_t ancestor_events;        /* sum of X over the run, in events */
    uint64_t time_yy, time_yx;       /* over all invocations, less what Settled has; below 2^63 */
} Link;

/* What an open invocation touched of a descendant. */
typedef struct Touch {
    int32_t node, depth;
    uint64_t calls;
    int64_t time, events;
} Touch;

/* Own cost of an invocation: without its kids. */
typedef struct Own {
    int64_t time, events;
} Own;

/* Times of four descendants and products of them: of each kind they are a register. */
typedef struct Below {
    uint64_t y[4], yy[4], yx[4];
} Below;
enum { BELOW = MAX_DISTANCE };

/* The last invocation with one kid whose deeper ones were lent, see chains.h, and what those after it that were the same
 * add, see alike.h. All sums stay below 2^63. */
typedef struct Last {
    uint64_t below, up;               /* numbers of what it was lent, and of what it lends; up: 0 if there was none */
    Touch kid;                        /* its time does not matter */
    int64_t events;                   /* of the invocation */
    struct Node *caller;
    uint32_t count, lends, first;     /* touches; how many it lends; the link of the first */
    uint32_t known;                   /* whether the links of the others follow that one, and both pairs are there */
    uint32_t cross, same;             /* places of these pairs */
    uint64_t repeats, bound;          /* bound: no sum is larger */
    uint64_t x, xx, y, yy, yx;        /* of the invocation and the kid */
    Below *deeper;                    /* of the others, BELOW at most */
} Last;
/* Invocations without kids that have the same events, see alike.h. */
typedef struct Leaves {
    int64_t events;
    uint64_t begun, n, x, xx;
} Leaves;
typedef struct Settled {
    uint64_t n, n_once;
    Sum k, kk, time_ky, time_y, time_yy, time_yx;
    LinkSums events;
} Settled;
typedef struct LinkMore {
    Settled *settled;
    Lane *lanes; /* LinkLane */
} LinkMore;

/* Counts of the buckets [low, low + length) of a log histogram. */
typedef struct Window {
    uint32_t low, length;
    uint64_t counts[];
} Window;

typedef struct Waits {
    uint64_t n;
    Extremes extremes;
    uint64_t unused;
    Sum sum_w, sum_ww;
} Waits;

typedef struct Bottom Bottom;
typedef struct Worsts Worsts;
typedef struct Code {
    Sum total_time, self_time;
    int64_t total_events, self_events;
    Lane *lanes; /* CodeLane */
    Bottom **reservoir; /* uniform, then one a stratum; an absent one is NULL */
    int32_t number;
    uint32_t closed, recorded; /* whether an outermost segment, a whole invocation has ended */
    struct PathCode *paths;    /* paths.h */
    uint32_t spanless;         /* whether its worst have no spans, for there were too many */
    Worsts *worst;             /* NULL until one has completed */
    int64_t worst_bound;       /* a longer time is among the worst */
} Code;

/* A calling context. */
typedef struct Node {
    int32_t parent, site, code, depth, number;
    uint32_t brief; /* spans of this time and below are not worth keeping in an invocation of it */
    struct Node *hot_child; /* called last from here */
    Code *sums;
    Window *histogram;
    uint64_t n;
    Extremes time, events; /* time: of those invocations only that were never off the CPU */
    Last last;
    Leaves leaves;
    uint64_t open;
    uint32_t pair_count, pair_capacity, link_count, link_capacity;
    Sum time_x, time_xx, events_x, events_xx; /* without what last and leaves have, and so are all sums of pairs and links */
    Pair local; /* (LOCAL, LOCAL), apart because leaves have no other */
    Pair *pairs;
    Link *links;
    LinkMore *more; /* beside links */
    Waits *waits;
    Lane *lanes; /* NodeLane */
    struct PathNode *path;  /* paths.h */
} Node;

/* ---- what is going on ---- */

typedef struct Bag {
    Touch *items;    /* in order of first touch */
    Lane **changes;  /* beside items: Change; NULL where there is none at all */
    uint32_t *index; /* of the first `indexed` items, once a search was long */
    uint32_t count, capacity, next, indexed; /* next: where the next touch is guessed to be */
    uint64_t lent;   /* number of what the items are, which the stack lends; 0: they are the bag's own */
    uint64_t times;  /* lent: the bits of all their times; else 0 */
    Touch *own;      /* lent: its own items, of which there is none now */
} Bag;

typedef struct Feature {
    int64_t number, bits; /* bits of the float64 */
} Feature;

/* An execution that has not ended. Its empty bags stay in the stack for the next one. */
typedef struct Frame {
    int64_t frame, started, segment, x, waited; /* segment: clock of the stack where it was last (re)entered */
    int64_t events_segment, events;
    Node *node, *slot;
    int32_t code, key;
    uint64_t fresh;
    int64_t least_span;  /* spans of this time and below are not taken within it */
    uint32_t first_span; /* where in the stack's spans those within it begin, since it was last (re)entered */
    uint32_t manner;     /* PLAIN, RESUMED (it was suspended) or ASIDE */
    Lane *segment_changes, *changes; /* Change: in this segment, in those before it; descendants included */
    uint32_t feature_count, feature_capacity;
    Bag kids, deeper;
    Feature *features;
    int64_t taken; /* while suspended: what was taken out of the clock of the ring that it was last in */
    uint32_t source;
    struct Frame *next_free;
} Frame;

typedef struct Span Span; /* spans.h */

/* The open invocations of a thread, or of one of its greenlets; frames[0] stands for the root. */
typedef struct Stack {
    Frame *frames;
    int32_t *depth_of; /* open invocations by code */
    uint32_t height, capacity, codes;
    int64_t events, away, left; /* away: ns that it was switched out; left: when it was last */
    int64_t serial;
    Touch *chain; /* by height: what the invocation there was to its caller, the top's kid and what lies above it */
    uint64_t *times; /* of the chain, so that four are a register; CHAIN_MORE longer than it, which are read and mean nothing */
    Span *spans; /* completed lately, in that order */
    uint32_t span_count, span_room;
    struct Stack *before, *after; /* of the same thread */
} Stack;
/* Where the events of one ring come in: the thread that it serves. Rings share none, so what one says harms no other. */
typedef struct Source {
    Stack *current, *stacks; /* current: NULL until the thread's first event */
    uint32_t number;
    int64_t turn, taken; /* of EVENT_TURN */
} Source;

/* ---- samples ---- */

typedef struct Callee {
    int64_t node, calls, time, cpu;
} Callee;
typedef struct Cost {
    int64_t metric, value;
} Cost;
typedef struct Sample {
    uint64_t sequence;
    int64_t started, time, events;
    int32_t node, key;
    uint32_t references, callees, features, costs;
} Sample; /* Callee[callees], Feature[features] and Cost[costs] follow */

typedef struct Ticket {
    uint64_t key, sequence;
    Sample *sample;
} Ticket;
/* The samples of smallest key; a heap, the largest (key, sequence) first. */
struct Bottom {
    uint64_t bound;
    Ticket *heap;
    uint32_t kept, capacity;
};

/* Bounds of the memory, see record/tree/call_tree.py: Limits. */
typedef struct Limits {
    uint32_t nodes, links, pairs, components, spans;
} Limits;
static const Limits USUAL_LIMITS = {1 << 15, 1 << 17, 1 << 18, 256, 1 << 19};

typedef struct Tree {
    Arena arena;
    Limits limits;
    uint64_t seed, calls;
    uint64_t lost, folded, links_left_out, pairs_left_out; /* records, calls, touches and products that met a bound */
    int64_t first, last;
    uint32_t seen, max_distance, lanes, links, pairs, components, uniform, per_stratum;
    uint32_t spans; /* kept of worst invocations */
    Grid nodes, codes; /* codes: Code * */
    Table children, pair_index, link_index, stacks;
    Table suspended; /* frame -> block with its Frame */
    Frame *free_frames;
    Stack *free_stacks;
    uint64_t chains; /* numbers of what was lent */
    struct Paths *paths; /* paths.h; NULL where durations by call path are not asked for */
} Tree;

_Static_assert(sizeof(Link) == 48, "sixteen are twelve cache lines");
_Static_assert(sizeof(Node) % 16 == 0 && sizeof(Code) % 16 == 0, "sums are aligned");

#endif
