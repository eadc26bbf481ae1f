#include "pieces.h"

#include <string.h>

static uint64_t bytes_of(const Piece *piece) {
    return sizeof(Piece) + piece->levels * sizeof(Batched) + piece->buckets * sizeof(Bucket);
}

static Piece *made(Tree *tree, Piece sizes) {
    Piece *piece = arena_alloc(&tree->arena, bytes_of(&sizes));
    if (!piece) return NULL;
    *piece = sizes;
    tree->paths->bytes += bytes_of(piece);
    return piece;
}

static uint32_t used(const Spread *spread) {
    uint32_t buckets = 0;
    for (uint32_t at = 0; at < spread->length; at++) buckets += spread->counts[at] > 0;
    return buckets;
}

static void put_buckets(const Spread *spread, Bucket *to) {
    for (uint32_t at = 0; at < spread->length; at++)
        if (spread->counts[at]) *to++ = (Bucket){spread->low + (int32_t)at, spread->counts[at]};
}

Piece *piece_of(Tree *tree, const Measured *measured, uint32_t observation) {
    const Spread *spread = &measured->spread;
    Piece *piece = made(tree, (Piece){.observation = observation, .zeros = spread->zeros, .scale = spread->scale,
                                      .buckets = used(spread), .levels = batches_count(&measured->batches)});
    if (!piece) return NULL;
    batches_put(&measured->batches, piece_levels(piece), piece->levels);
    put_buckets(spread, piece_buckets(piece));
    return piece;
}

static void clear(Measured *measured) {
    spread_clear(&measured->spread);
    batches_clear(&measured->batches);
}

void piece_close(Tree *tree, PathNode *path, uint32_t observation) {
    if (!path->wall.batches.n) return;
    Piece *piece = piece_of(tree, &path->wall, observation);
    if (piece && path->apart) piece->cpu = piece_of(tree, &path->cpu, observation);
    clear(&path->wall);
    if (path->apart) clear(&path->cpu);
    path->apart = 0;
    if (!piece) return;
    *(path->last ? &path->last->next : &path->first) = piece;
    path->last = piece;
}

static void free_one(Tree *tree, Piece *piece) {
    tree->paths->bytes -= bytes_of(piece);
    arena_free(&tree->arena, piece, bytes_of(piece));
}

void piece_free(Tree *tree, Piece *piece) {
    if (piece->cpu) free_one(tree, piece->cpu);
    free_one(tree, piece);
}

/* ---- two of one clock ---- */

static void add_spread(Tree *tree, Spread *to, const Piece *piece) {
    for (uint32_t at = 0; at < piece->buckets; at++)
        spread_put(&tree->arena, to, (int32_t)piece->scale, piece_buckets(piece)[at].index, piece_buckets(piece)[at].count);
    to->zeros += piece->zeros;
}

static Piece *sum_of(Tree *tree, const Piece *a, const Piece *b) {
    Spread *spread = &tree->paths->between.spread;
    const Piece *more = a->levels > b->levels ? a : b, *fewer = more == a ? b : a;
    add_spread(tree, spread, a);
    add_spread(tree, spread, b);
    Piece *sum = made(tree, (Piece){.zeros = spread->zeros, .scale = spread->scale, .buckets = used(spread), .levels = more->levels});
    if (sum) {
        Batched *levels = piece_levels(sum);
        memcpy(levels, piece_levels(more), more->levels * sizeof(Batched));
        for (uint32_t at = 0; at < fewer->levels; at++) {
            levels[at].batches += piece_levels(fewer)[at].batches;
            levels[at].sum += piece_levels(fewer)[at].sum;
            levels[at].squares += piece_levels(fewer)[at].squares;
        }
        put_buckets(spread, piece_buckets(sum));
    }
    spread_clear(spread);
    return sum;
}

/* One in place of two, with both clocks; the first of the two if the arena is full. */
static Piece *merged(Tree *tree, Piece *a, Piece *b) {
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
        if (last && (*last)->observation == piece->observation) *last = merged(tree, *last, piece);
        else *(last = end) = piece;
        end = &(*last)->next;
    }
    path->last = last ? *last : NULL;
}
