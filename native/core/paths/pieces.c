#include "pieces.h"

#include <string.h>

static uint64_t bytes_of(const Piece *piece) {
    return sizeof(Piece) + piece->levels * sizeof(BatchSums) + piece->buckets * sizeof(Bucket);
}

static Piece *create(Tree *tree, Piece sizes) {
    Piece *piece = arena_alloc(&tree->arena, bytes_of(&sizes));
    if (!piece) return NULL;
    *piece = sizes;
    tree->paths->bytes += bytes_of(piece);
    return piece;
}

static uint32_t count_used(const LogHistogram *histogram) {
    uint32_t buckets = 0;
    for (uint32_t at = 0; at < histogram->length; at++) buckets += histogram->counts[at] > 0;
    return buckets;
}

static void write_buckets(const LogHistogram *histogram, Bucket *to) {
    for (uint32_t at = 0; at < histogram->length; at++)
        if (histogram->counts[at]) *to++ = (Bucket){histogram->low + (int32_t)at, histogram->counts[at]};
}

Piece *piece_create(Tree *tree, const Durations *durations, uint32_t observation) {
    const LogHistogram *histogram = &durations->histogram;
    Piece *piece = create(tree, (Piece){.observation = observation, .zeros = histogram->zeros, .scale = histogram->scale,
                                        .buckets = count_used(histogram), .levels = batches_count(&durations->batches)});
    if (!piece) return NULL;
    batches_write(&durations->batches, piece_levels(piece), piece->levels);
    write_buckets(histogram, piece_buckets(piece));
    return piece;
}

static void clear(Durations *durations) {
    log_histogram_clear(&durations->histogram);
    batches_clear(&durations->batches);
}

void piece_close(Tree *tree, PathNode *path, uint32_t observation) {
    if (!path->wall.batches.n) return;
    Piece *piece = piece_create(tree, &path->wall, observation);
    if (piece && path->has_cpu) piece->cpu = piece_create(tree, &path->cpu, observation);
    clear(&path->wall);
    if (path->has_cpu) clear(&path->cpu);
    path->has_cpu = 0;
    if (!piece) return;
    *(path->last ? &path->last->next : &path->first) = piece;
    path->last = piece;
}

static void free_piece(Tree *tree, Piece *piece) {
    tree->paths->bytes -= bytes_of(piece);
    arena_free(&tree->arena, piece, bytes_of(piece));
}

void piece_free(Tree *tree, Piece *piece) {
    if (piece->cpu) free_piece(tree, piece->cpu);
    free_piece(tree, piece);
}

/* ---- merging ---- */

static void add_piece(Tree *tree, LogHistogram *to, const Piece *piece) {
    for (uint32_t at = 0; at < piece->buckets; at++)
        log_histogram_add_many(&tree->arena, to, (int32_t)piece->scale, piece_buckets(piece)[at].index,
                               piece_buckets(piece)[at].count);
    to->zeros += piece->zeros;
}

static Piece *sum_of(Tree *tree, const Piece *a, const Piece *b) {
    LogHistogram *histogram = &tree->paths->merging;
    const Piece *more = a->levels > b->levels ? a : b, *fewer = more == a ? b : a;
    add_piece(tree, histogram, a);
    add_piece(tree, histogram, b);
    Piece *sum = create(tree, (Piece){.zeros = histogram->zeros, .scale = histogram->scale,
                                      .buckets = count_used(histogram), .levels = more->levels});
    if (sum) {
        BatchSums *levels = piece_levels(sum);
        memcpy(levels, piece_levels(more), more->levels * sizeof(BatchSums));
        for (uint32_t at = 0; at < fewer->levels; at++) {
            levels[at].batches += piece_levels(fewer)[at].batches;
            levels[at].sum += piece_levels(fewer)[at].sum;
            levels[at].squares += piece_levels(fewer)[at].squares;
        }
        write_buckets(histogram, piece_buckets(sum));
    }
    log_histogram_clear(histogram);
    return sum;
}

/* Replace two pieces by one, by both clocks. Gives the first of the two if the arena is full. */
static Piece *merge(Tree *tree, Piece *a, Piece *b) {
    Piece *sum = sum_of(tree, a, b);
    if (sum && (a->cpu || b->cpu)) sum->cpu = sum_of(tree, a->cpu ? a->cpu : a, b->cpu ? b->cpu : b);
    if (sum) {
        sum->observation = a->observation;
        piece_free(tree, a);
    }
    piece_free(tree, b);
    return sum ? sum : a;
}

void pieces_merge(Tree *tree, PathNode *path, const uint32_t *to) {
    Piece *left = path->first, **end = &path->first, **last = NULL;
    while (left) {
        Piece *piece = left;
        left = piece->next;
        piece->next = NULL;
        piece->observation = to[piece->observation];
        if (last && (*last)->observation == piece->observation) *last = merge(tree, *last, piece);
        else *(last = end) = piece;
        end = &(*last)->next;
    }
    path->last = last ? *last : NULL;
}
