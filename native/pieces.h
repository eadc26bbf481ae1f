/* Durations of a path by observations: what is being measured, and pieces, which are closed observations of a path. They
 * are made from what was measured, and put together where they would be too many.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: closing a piece is a pass over its buckets.
 */
#ifndef PERFLAW_PIECES_H
#define PERFLAW_PIECES_H

#include "batches.h"
#include "layout.h"
#include "logs.h"
#include "spread.h"

enum { CLOCK_WALL, CLOCK_CPU, PATH_CLOCKS };
enum { WHOLE = -1 }; /* in place of a node: the function, whatever the path */

typedef struct Bucket {
    int32_t index;
    uint32_t count;
} Bucket;

/* What a closed observation has of a path, or of the function as a whole; by one clock. */
typedef struct Piece {
    struct Piece *next, *cpu; /* cpu: the same by the other clock, of the same observation; NULL where it is equal */
    uint32_t observation, zeros, buckets, levels;
    int64_t scale, unused;
} Piece; /* Batched[levels] and Bucket[buckets] follow */
_Static_assert(sizeof(Piece) % 16 == 0, "sums are aligned");
static inline Batched *piece_levels(const Piece *piece) { return (Batched *)(piece + 1); }
static inline Bucket *piece_buckets(const Piece *piece) { return (Bucket *)(piece_levels(piece) + piece->levels); }

/* What is being measured, by one clock. */
typedef struct Measured {
    Spread spread;
    Batches batches;
} Measured;

/* A path, or all paths of a function. */
typedef struct PathNode {
    struct PathNode *next; /* of the same function */
    int64_t number;        /* of the node, or WHOLE */
    Measured wall, cpu;
    int64_t apart;         /* whether cpu is used: some invocation of this observation was off the CPU */
    Piece *first, *last;   /* in order of their observations */
} PathNode;

typedef struct Seen {
    int64_t begin, end;
    uint64_t points, nested;
} Seen;

/* Of a function. */
typedef struct PathCode {
    PathNode whole; /* its spreads stay empty: they are the sums of those of its paths, which hang behind it */
    Seen open, *closed;
    uint32_t count, capacity, doubled, dropped;
} PathCode;

typedef struct Paths {
    Logs logs;
    uint32_t clocks, dropped;
    uint64_t bytes, limit;
    Measured between; /* where two are put together */
} Paths;

/* What was measured, as a piece; NULL if the arena is full. Its bytes are counted. */
Piece *piece_of(Tree *tree, const Measured *measured, uint32_t observation);
/* Hang the piece of an observation, with both clocks, behind those of a path, and begin anew. */
void piece_close(Tree *tree, PathNode *path, uint32_t observation);
/* Give every piece the observation at its place in `to`, and put together what then is of the same one. */
void pieces_merge(Tree *tree, PathNode *path, const uint32_t *to);
void piece_free(Tree *tree, Piece *piece);

#endif
