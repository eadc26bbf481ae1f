/* Rows of durations by call path: observations of functions, and in them pieces of paths with their buckets and batches. */
#include "export.h"
#include "grid.h"
#include "paths.h"

static void put_seen(int64_t code, const PathCode *paths, Sink *sink) {
    for (uint32_t at = 0; at < paths->count; at++) {
        const Seen *seen = &paths->closed[at];
        SeenRow row = {code, at, seen->begin, seen->end, (int64_t)seen->points, (int64_t)seen->nested};
        sink_put(sink, &row, sizeof row);
    }
}

static void put_levels(const Piece *piece, Sink *sink) {
    for (uint32_t at = 0; at < piece->levels; at++) {
        const Batched *level = &piece_levels(piece)[at];
        BatchRow row = {(int64_t)level->batches, (int64_t)level->sum, {0}};
        sink_sum(row.squares, level->squares);
        sink_put(sink, &row, sizeof row);
    }
}

static void put_buckets(const Piece *piece, Sink *sink) {
    for (uint32_t at = 0; at < piece->buckets; at++) {
        Bucket bucket = piece_buckets(piece)[at];
        sink_put(sink, &(BucketRow){bucket.index, bucket.count}, sizeof(BucketRow));
    }
}

static void put_piece(uint32_t table, PieceRow row, const Piece *piece, Sink *sink) {
    row.scale = piece->scale;
    row.zeros = piece->zeros;
    row.buckets = piece->buckets;
    row.levels = piece->levels;
    if (table == TABLE_PATH_PIECES) sink_put(sink, &row, sizeof row);
    else if (table == TABLE_PATH_BATCHES) put_levels(piece, sink);
    else put_buckets(piece, sink);
}

static void put_code(uint32_t table, int64_t code, const PathCode *paths, Sink *sink) {
    for (const PathNode *path = &paths->whole; path; path = path->next)
        for (const Piece *piece = path->first; piece; piece = piece->next) {
            PieceRow row = {code, path->number, piece->observation, CLOCK_WALL, 0, 0, 0, 0};
            put_piece(table, row, piece, sink);
            row.clock = CLOCK_CPU;
            if (piece->cpu) put_piece(table, row, piece->cpu, sink);
        }
}

void export_paths(const Tree *tree, uint32_t table, Sink *sink) {
    for (uint32_t number = 0; tree->paths && number < tree->codes.count; number++) {
        const Code *code = *(Code **)grid_at(&tree->codes, number);
        const PathCode *paths = code ? code->paths : NULL;
        if (!paths) continue;
        if (table == TABLE_PATH_CODES) sink_put(sink, &(PathCodeRow){number, paths->dropped}, sizeof(PathCodeRow));
        else if (table == TABLE_PATH_SEEN) put_seen(number, paths, sink);
        else put_code(table, number, paths, sink);
    }
}
