/* Durations of a path by observations: what is being measured, and pieces, each of which is a closed observation of a
 * path.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: closing a piece is a pass over its buckets.
 */
#ifndef PERFLAW_PIECES_H
#define PERFLAW_PIECES_H

#include "batches.h"
#include "core/tree/tree.h"
#include "log_histogram.h"

enum { CLOCK_WALL, CLOCK_CPU, PATH_CLOCKS };
enum { WHOLE = -1 }; /* in place of a node's number: the function, whatever the path */

typedef struct Bucket {
    int32_t index;
    uint32_t count;
} Bucket;

/* What a closed observation has of a path, or of the function as a whole, by one clock. */
typedef struct Piece {
    struct Piece *next;
    struct Piece *cpu; /* the same observation by the CPU's clock; NULL if it is equal, and in pieces of that clock */
    uint32_t observation, zeros, buckets, levels;
    int64_t scale, unused;
} Piece; /* BatchSums[levels] and Bucket[buckets] follow */
_Static_assert(sizeof(Piece) % 16 == 0, "sums are aligned");
static inline BatchSums *piece_levels(const Piece *piece) { return (BatchSums *)(piece + 1); }
static inline Bucket *piece_buckets(const Piece *piece) { return (Bucket *)(piece_levels(piece) + piece->levels); }

/* The durations of the open observation, by one clock. */
typedef struct Durations {
    LogHistogram histogram;
    Batches batches;
} Durations;

/* A path, or all paths of a function. */
typedef struct PathNode {
    struct PathNode *next; /* of the same function */
    int64_t number;        /* of the node, or WHOLE */
    Durations wall, cpu;
    int64_t has_cpu;       /* whether cpu is used, because an invocation of this observation was off the CPU */
    Piece *first, *last;   /* in the order of their observations */
} PathNode;

typedef struct Observation {
    int64_t begin, end;
    uint64_t points, nested; /* invocations, and the calls within them, the skipped ones too */
} Observation;

typedef struct FunctionPaths {
    /* its histograms stay empty, because they are the sums of those of its paths, which are linked behind it */
    PathNode whole;
    Observation open, *closed;
    uint32_t count, capacity, doubled, dropped; /* doubled: how often the bounds of an observation were */
} FunctionPaths;

typedef struct Paths {
    LogTable logs;
    uint32_t clocks, dropped; /* dropped: functions */
    uint64_t bytes, limit;
    LogHistogram merging; /* empty between merges */
} Paths;

/* Make a piece of what was measured, whose bytes are counted; NULL if the arena is full. */
Piece *piece_create(Tree *tree, const Durations *durations, uint32_t observation);
/* Append the piece of an observation to those of a path, by both clocks, and measure anew. */
void piece_close(Tree *tree, PathNode *path, uint32_t observation);
/* Replace the observation of every piece by the one that `to` has at its index, and merge the pieces that then are
 * of the same one. */
void pieces_merge(Tree *tree, PathNode *path, const uint32_t *to);
void piece_free(Tree *tree, Piece *piece);

#endif
