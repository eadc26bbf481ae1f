/* What a call tree consists of. All of it lies in one arena, and refers to each other by plain pointers.
 *
 *     Tree -- nodes: Node -- links: Link, pairs: Pair, lanes: NodeLane ...
 *          \- functions: Function -- reservoir: BottomK -- Sample
 *          \- EventSource -- Stack -- Invocation -- callees, deeper: Descendant
 *
 * A lane is a metric. Time and events are counted for every call. Any other lane is a list of cells that hang only
 * where something of it was seen, so that an absent lane costs nothing. CPU time is such a lane: time less what was off
 * the CPU.
 *
 * In sums, X is the inclusive cost of an invocation, Y that of one of its descendants, and K the number of calls of
 * that descendant; time_yx is thus the sum of Y * X in time.
 *
 * Ownership: a Tree owns its arena, and the arena owns everything else. Threads: one at a time.
 */
#ifndef PERFLAW_TREE_H
#define PERFLAW_TREE_H

#include "core/base/arena.h"
#include "core/base/exact.h"
#include "core/base/grid.h"
#include "core/base/record.h"
#include "core/base/table.h"

enum { ROOT = 0 }; /* number of the node that stands for no call */
enum { ELSEWHERE = -2 }; /* call site of the nodes for contexts beyond the bound */
/* in place of a callee's number in a pair: the invocation's exclusive cost; all the others */
enum { LOCAL = -1, OTHER = -2 };
enum { MAX_DISTANCE = 16, MAX_CALLEES_APART = 64, MAX_LANES = 32 };
enum { UNIFORM_SIZE = 512, STRATUM_SIZE = 32, SHRINK_FACTOR = 4, STRATA = 65 }; /* of the reservoir */

/* ---- cells of the lanes that not every call has something of; each begins with a Lane ---- */

typedef struct Lane {
    struct Lane *next;
    uint64_t metric;
} Lane;
typedef struct Change {
    Lane lane;
    int64_t value; /* METRIC_CPU: ns off the CPU */
} Change;
/* Sums over the n invocations that have a cell. Those of METRIC_CPU are the difference to what the time gives. */
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
typedef struct FunctionLane {
    Lane lane;
    Sum total, self;
} FunctionLane;

/* ---- sums of a node ---- */

/* The products of two parts of an invocation's cost: of its exclusive cost and its callees' inclusive ones. */
typedef struct Pair {
    int32_t i, j;
    Lane *lanes; /* PairLane */
    Sum time, events;
} Pair;

/* Sums of an ancestor and one of its descendants. Nearly always a descendant has as many calls and events in an
 * ancestor's next invocation as in the one before. So a link counts such a run, and what follows from it is added to
 * LinkTotals when it ends. Sums of products of times have 64 bits here, and move to LinkTotals before they overflow:
 * so a link and call takes 48 bytes and three stores, two of them double. */
typedef struct Link {
    int32_t node;
    uint32_t repeats, calls, events; /* length of the run; K and Y, in events, of each of its invocations */
    int64_t time;                    /* sum of Y over the run, in time */
    uint64_t ancestor_events;        /* sum of X over the run, in events */
    uint64_t time_yy, time_yx;       /* over all invocations, less what LinkTotals has; below 2^63 */
} Link;

/* What LinkTotals has is exact; the run of the link is not in it. */
typedef struct LinkTotals {
    uint64_t n, n_once; /* invocations of the ancestor with this descendant; those that call it once */
    Sum k, kk, time_ky, time_y, time_yy, time_yx;
    LinkSums events;
} LinkTotals;
typedef struct LinkDetails {
    LinkTotals *totals; /* NULL while there are none */
    Lane *lanes;        /* LinkLane */
} LinkDetails;

/* Calls and inclusive cost of one descendant node within an open invocation. */
typedef struct Descendant {
    int32_t node, depth;
    uint64_t calls;
    int64_t time, events;
} Descendant;

/* Exclusive cost of an invocation: without its callees. */
typedef struct ExclusiveCost {
    int64_t time, events;
} ExclusiveCost;

/* Times of four descendants and their products; each array fills a vector register. */
typedef struct FourDescendants {
    uint64_t y[4], yy[4], yx[4];
} FourDescendants;
enum { MAX_REPEATED_DESCENDANTS = MAX_DISTANCE };

/* The last invocation with one callee whose deeper descendants were lent (chains.h), and the sums of those after it
 * that were the same (repeats.h). All sums stay below 2^63. */
typedef struct RepeatedCall {
    /* numbers of the loan it had, and of the one it gives; lent is 0 if there was none */
    uint64_t borrowed, lent;
    Descendant callee;                  /* its time does not matter */
    int64_t events;                     /* of the invocation */
    struct Node *caller;
    uint32_t count, lent_count;         /* descendants it has, and how many of them it lends */
    uint32_t first_link;                /* index of the link to the callee */
    uint32_t is_resolved;               /* the links of the other descendants follow that one, and both pairs exist */
    uint32_t cross_pair, callee_pair;   /* indices of (LOCAL, callee) and (callee, callee) */
    uint64_t n, bound;                  /* invocations that repeated it; no sum is larger than the bound */
    uint64_t x, xx, y, yy, yx;          /* of the invocation and the callee */
    FourDescendants *deeper;            /* of the other descendants, at most MAX_REPEATED_DESCENDANTS */
} RepeatedCall;
/* Invocations without callees that have the same events (repeats.h). */
typedef struct RepeatedLeaf {
    int64_t events;
    uint64_t is_begun, n, x, xx;
} RepeatedLeaf;

/* Counts of the buckets [low, low + length) of a histogram with four buckets to a power of two. */
typedef struct Histogram {
    uint32_t low, length;
    uint64_t counts[];
} Histogram;

/* How long generators and coroutines were suspended, over those that were; of async generators, in what they await. */
typedef struct Waits {
    uint64_t n;
    Extremes extremes;
    uint64_t unused;
    Sum sum_w, sum_ww;
} Waits;

typedef struct BottomK BottomK;
typedef struct WorstList WorstList;
typedef struct Function {
    Sum total_time, self_time;
    int64_t total_events, self_events;
    Lane *lanes;                  /* FunctionLane */
    BottomK **reservoir;          /* the uniform sample, then one per stratum; NULL where there is none yet */
    int32_t number;
    uint32_t is_library;          /* whether its contexts are put together before those of other functions (nodes.h) */
    uint32_t closed, recorded;    /* whether an outermost segment, and a whole invocation, has ended */
    struct FunctionPaths *paths;  /* core/paths/pieces.h */
    /* whether its worst invocations have no spans any more, because there were too many in all */
    uint32_t spans_dropped;
    uint32_t is_observed;         /* whether its outermost invocations are observations (observations.h) */
    WorstList *worst;             /* NULL until an invocation has completed */
    int64_t worst_bound;          /* a longer invocation is among the worst */
} Function;

/* A calling context. */
typedef struct Node {
    int32_t parent, site, code, depth, number; /* code: number of the function */
    uint32_t min_span_time; /* spans of this time and below are not worth keeping within an invocation of this node */
    struct Node *last_child; /* the node that was called last from here */
    Function *function;
    Histogram *histogram;
    uint64_t n, counted; /* completed invocations; calls that were only counted (EVENT_COUNT), of which events alone tell */
    Extremes time, events; /* time: only of invocations that were never off the CPU */
    RepeatedCall repeated;
    RepeatedLeaf repeated_leaf;
    uint64_t open;
    uint32_t pair_count, pair_capacity, link_count, link_capacity;
    /* like all sums of pairs and links, without what the two repeated ones have */
    Sum time_x, time_xx, events_x, events_xx;
    Pair local; /* (LOCAL, LOCAL) stands apart because leaves have no other pair */
    Pair *pairs;
    Link *links;
    LinkDetails *link_details; /* parallel to links */
    Waits *waits;
    Lane *lanes; /* NodeLane */
    struct PathNode *path; /* core/paths/pieces.h */
} Node;

/* ---- what is open ---- */

/* The descendants that an open invocation has had so far (descendants.h). */
typedef struct Descendants {
    Descendant *items;   /* in the order of their first call */
    Lane **changes;      /* parallel to items: Change; NULL if no item has any */
    uint32_t *index;     /* hash index of the first `indexed` items, made once a search was long */
    uint32_t count, capacity, guess, indexed; /* guess: position where the next call is expected */
    uint64_t loan;       /* number of the loan that the items are, which the stack gives; 0 if they are its own */
    uint64_t time_bits;  /* of a loan: the bits of all times, or-ed; else 0 */
    Descendant *own_items; /* while there is a loan: its own array, which is then empty */
} Descendants;

typedef struct Feature {
    int64_t number, bits; /* bits of the float64 */
} Feature;

enum InvocationKind {
    PLAIN,
    RESUMED, /* it was suspended */
    ASIDE,   /* work of the interpreter, which is no call */
};

/* An invocation that has not ended. Its empty arrays stay in the stack for the next one at the same height. A
 * segment is the part of an invocation from its (re)entry to its return or suspension. */
typedef struct Invocation {
    int64_t frame, started;       /* identity of the frame */
    int64_t segment_start;        /* by the clock of the stack */
    int64_t time, waited;         /* of the segments that have ended; waited: while it was suspended */
    int64_t consumed;             /* part of `waited` in which an async generator's consumer had a value of it */
    int64_t segment_start_events, events;
    int64_t segment_start_resumes, resumes; /* resumes: how often generators and coroutines went on within it, itself too */
    Node *node;                   /* its context */
    Node *slot;                   /* the context of its present segment, which another caller may have resumed */
    int32_t code, key;            /* code: negative if it began before the recording; key: sampling priority or -1 */
    uint64_t uncounted;           /* 1 until its caller has counted the call */
    int64_t min_span_time;        /* spans of this time and below are not taken within it */
    uint32_t first_span;          /* index in the stack's spans where those of this segment begin */
    uint32_t kind;                /* enum InvocationKind */
    uint32_t is_consumed;         /* while suspended: whether its consumer has a value of it */
    uint32_t is_observed;         /* whether it is an observation; means nothing while no function is observed */
    Lane *segment_changes, *changes; /* Change, descendants included: in this segment, and in those before it */
    uint32_t feature_count, feature_capacity;
    Descendants callees, deeper;  /* one level below, and further below */
    Descendants parts;            /* of an observation (observations.h); else empty */
    Feature *features;
    int64_t overhead_ns;          /* while suspended: that of the event source that it was last in */
    uint32_t source;              /* number of that source */
    uint32_t skipped;             /* calls within it that are not recorded and cost the tracer's time; known at its end */
    struct Invocation *next_free;
} Invocation;

typedef struct Span Span; /* spans.h */

/* Beyond its height, `times` of a stack has this many entries that are read, four at a time, and mean nothing. */
enum { CHAIN_PADDING = 7 };

/* The open invocations of a thread, or of one of its greenlets; entry 0 stands for the root. */
typedef struct Stack {
    Invocation *open;
    int32_t *depth_of; /* number of open invocations, by function */
    uint32_t height, capacity, depth_capacity;
    int64_t events, resumes, switched_out_ns, switched_out_at; /* how long it was switched out in all, and since when */
    int64_t serial;
    Descendant *chain; /* by height: what the invocation there is to its caller; see chains.h */
    uint64_t *times;   /* of the chain, so that four of them fill a register */
    Span *spans;       /* that completed lately, in that order */
    uint32_t span_count, span_capacity;
    uint32_t observed; /* place of the open invocation that is observed, 0: none; one that is beyond the height has ended */
    struct Stack *previous, *next; /* of the same thread */
} Stack;

/* Where the events of one ring come in: the thread that the ring serves. Sources share nothing, so what one writes
 * cannot harm another. */
typedef struct EventSource {
    Stack *current, *stacks; /* current: NULL until the thread's first event */
    uint32_t number;
    int64_t turn, overhead_ns, rings; /* of the last EVENT_TURN */
} EventSource;

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
    int64_t waited; /* while it was suspended, and no consumer had a value of it; its time excludes that */
    int64_t resumes;
    uint32_t references, callees, features, costs, parts;
} Sample; /* Callee[callees], Feature[features], Cost[costs] and Callee[parts], which has own costs, follow */

typedef struct SampleEntry {
    uint64_t key, sequence;
    Sample *sample;
} SampleEntry;
/* The samples of smallest key, as a heap whose root has the largest (key, sequence). */
struct BottomK {
    uint64_t bound; /* only smaller keys are taken */
    SampleEntry *heap;
    uint32_t count, capacity;
};

/* Bounds of the memory; record/tree/records.py has the same. */
typedef struct Limits {
    uint32_t nodes, links, pairs, components, spans;
} Limits;
static const Limits DEFAULT_LIMITS = {1 << 15, 1 << 17, 1 << 18, 256, 1 << 19};

typedef struct Tree {
    Arena arena;
    Limits limits;
    uint64_t seed, calls;
    uint64_t lost, folded, links_left_out, pairs_left_out; /* records, calls, descendants and products that met a bound */
    uint64_t unread_rings; /* rings of which records could not be read, because they are damaged */
    int64_t first_stamp, last_stamp;
    uint32_t has_stamps, max_distance, lane_count, link_count, pair_count, sampled_functions, uniform_size, stratum_size;
    uint32_t span_count; /* spans kept of worst invocations */
    uint32_t library_node_count; /* nodes of functions of libraries */
    uint32_t is_observing; /* whether any function is observed */
    Grid nodes, functions; /* functions: Function *, by number */
    Table children, pair_index, link_index, stacks;
    Table suspended; /* frame -> block with its Invocation */
    Invocation *free_invocations;
    Stack *free_stacks;
    uint64_t loans; /* how many numbers of loans were given */
    struct Paths *paths; /* core/paths/pieces.h; NULL if durations by call path are not kept */
} Tree;

_Static_assert(sizeof(Link) == 48, "sixteen links are twelve cache lines");
_Static_assert(sizeof(Node) % 16 == 0 && sizeof(Function) % 16 == 0, "sums are aligned");

#endif
