#include "export_paths.h"

#include "core/paths/pieces.h"
#include "core/tree/nodes.h"

static void put_observations(int64_t code, const FunctionPaths *paths, RowSink *sink) {
    for (uint32_t at = 0; at < paths->count; at++) {
        const Observation *closed = &paths->closed[at];
        SeenRow row = {code, at, closed->begin, closed->end, (int64_t)closed->points, (int64_t)closed->nested};
        sink_put(sink, &row, sizeof row);
    }
}

static void put_levels(const Piece *piece, RowSink *sink) {
    for (uint32_t at = 0; at < piece->levels; at++) {
        const BatchSums *level = &piece_levels(piece)[at];
        BatchRow row = {(int64_t)level->batches, (int64_t)level->sum, {0}};
        sink_split(row.squares, level->squares);
        sink_put(sink, &row, sizeof row);
    }
}

static void put_buckets(const Piece *piece, RowSink *sink) {
    for (uint32_t at = 0; at < piece->buckets; at++) {
        Bucket bucket = piece_buckets(piece)[at];
        sink_put(sink, &(BucketRow){bucket.index, bucket.count}, sizeof(BucketRow));
    }
}

static void put_piece(uint32_t table, PieceRow row, const Piece *piece, RowSink *sink) {
    row.scale = piece->scale;
    row.zeros = piece->zeros;
    row.buckets = piece->buckets;
    row.levels = piece->levels;
    if (table == TABLE_PATH_PIECES) sink_put(sink, &row, sizeof row);
    else if (table == TABLE_PATH_BATCHES) put_levels(piece, sink);
    else put_buckets(piece, sink);
}

static void put_pieces(uint32_t table, int64_t code, const FunctionPaths *paths, RowSink *sink) {
    for (const PathNode *path = &paths->whole; path; path = path->next)
        for (const Piece *piece = path->first; piece; piece = piece->next) {
            PieceRow row = {code, path->number, piece->observation, CLOCK_WALL, 0, 0, 0, 0};
            put_piece(table, row, piece, sink);
            row.clock = CLOCK_CPU;
            if (piece->cpu) put_piece(table, row, piece->cpu, sink);
        }
}

void export_paths(const Tree *tree, uint32_t table, RowSink *sink) {
    for (uint32_t number = 0; tree->paths && number < tree->functions.count; number++) {
        const Function *function = function_at(tree, number);
        const FunctionPaths *paths = function ? function->paths : NULL;
        if (!paths) continue;
        if (table == TABLE_PATH_CODES) sink_put(sink, &(PathCodeRow){number, paths->dropped}, sizeof(PathCodeRow));
        else if (table == TABLE_PATH_SEEN) put_observations(number, paths, sink);
        else put_pieces(table, number, paths, sink);
    }
}
