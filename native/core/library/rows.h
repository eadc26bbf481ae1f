/* Rows of the tables of a finished tree: plain int64 columns; an exact sum is two columns, low word first.
 * record/tree/core.py has the same for NumPy, and a test compares the sizes.
 *
 * A table of lanes has one row per lane for every row of the table before it, in the same order; so do the costs of
 * samples. Callees, features and parts follow in the order of the samples, which say how many they have; so do spans in the
 * order of the worst invocations.
 *
 * Ownership: a RowSink writes to the caller's buffer. Threads: one at a time. Cost: a copy per row.
 */
#ifndef PERFLAW_ROWS_H
#define PERFLAW_ROWS_H

#include <stddef.h>

#include "core/tree/tree.h"

/* Tables of core_export; their rows follow in this order. */
enum {
    TABLE_HEAD, TABLE_NODES, TABLE_NODE_LANES, TABLE_PAIRS, TABLE_PAIR_LANES, TABLE_LINKS, TABLE_LINK_LANES,
    TABLE_HISTOGRAM, TABLE_WAITS, TABLE_CODES, TABLE_CODE_LANES, TABLE_SAMPLES, TABLE_COSTS, TABLE_CALLEES,
    TABLE_FEATURES, TABLE_WORST, TABLE_SPANS,
    TABLE_PATH_CODES, TABLE_PATH_SEEN, TABLE_PATH_PIECES, TABLE_PATH_BUCKETS, TABLE_PATH_BATCHES, TABLE_PARTS, TABLES
};

typedef struct HeadRow {
    int64_t lanes, calls, seen, first, last, folded, links_left_out, pairs_left_out, lost, full, memory, unread_rings;
} HeadRow;
typedef struct NodeRow {
    int64_t parent, site, code, depth, n, open, counted;
} NodeRow;
typedef struct NodeLaneRow {
    int64_t sum_x[2], sum_xx[2], min_x, max_x;
} NodeLaneRow;
typedef struct PairRow {
    int64_t node, i, j;
} PairRow;
typedef struct PairLaneRow {
    int64_t sum_yy[2];
} PairLaneRow;
typedef struct LinkRow {
    int64_t ancestor, descendant, n, n_once, sum_k[2], sum_kk[2];
} LinkRow;
typedef struct LinkLaneRow {
    int64_t sum_ky[2], sum_y[2], sum_yy[2], sum_yx[2];
} LinkLaneRow;
typedef struct HistogramRow {
    int64_t node, bucket, count;
} HistogramRow;
typedef struct WaitRow {
    int64_t node, n, sum_w[2], sum_ww[2], least, most;
} WaitRow;
typedef struct CodeRow {
    int64_t code, closed, recorded;
} CodeRow;
typedef struct CodeLaneRow {
    int64_t total[2], self[2];
} CodeLaneRow;
typedef struct SampleRow {
    int64_t code, sequence, node, started, uniform_key, stratum_key, waited, resumes, callees, features, parts;
} SampleRow;
typedef struct CostRow {
    int64_t cost;
} CostRow;
typedef struct WorstRow {
    int64_t code, sequence, node, started, time, cpu, events, spans;
} WorstRow;
typedef struct SpanRow {
    int64_t node, parent, started, time;
} SpanRow;
typedef struct PathCodeRow {
    int64_t code, dropped;
} PathCodeRow;
typedef struct SeenRow {
    int64_t code, observation, begin, end, points, nested;
} SeenRow;
/* Buckets and batches follow in the order of the pieces, which say how many they have. Node -1 is the whole
 * function. */
typedef struct PieceRow {
    int64_t code, node, observation, clock, scale, zeros, buckets, levels;
} PieceRow;
typedef struct BucketRow {
    int64_t index, count;
} BucketRow;
typedef struct BatchRow {
    int64_t batches, sum, squares[2];
} BatchRow;
/* The rows of callees and parts are Callee, those of features are Feature (tree.h). */

/* Where rows go. Their bytes are always counted in `needed`, and copied as long as they fit. */
typedef struct RowSink {
    char *to;
    size_t size, needed;
} RowSink;
/* Add a row, or several. */
void sink_put(RowSink *sink, const void *row, size_t size);
/* Split a sum into its two columns. */
void sink_split(int64_t *words, Sum sum);

#endif
