#include "reservoir.h"

#include <string.h>

#include "grid.h"
#include "lanes.h"

/* ---- one bottom ---- */

static int above(const Ticket *a, const Ticket *b) {
    return a->key != b->key ? a->key > b->key : a->sequence > b->sequence;
}

static void sift_down(Ticket *heap, uint32_t size, Ticket ticket) {
    uint32_t at = 0, below;
    while ((below = 2 * at + 1) < size) {
        if (below + 1 < size && above(&heap[below + 1], &heap[below])) below++;
        if (!above(&heap[below], &ticket)) break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = ticket;
}

static void sift_up(Ticket *heap, uint32_t at, Ticket ticket) {
    for (; at && above(&ticket, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = ticket;
}

static uint64_t bytes(const Sample *sample) {
    return sizeof(Sample) + sample->callees * sizeof(Callee) + sample->features * sizeof(Feature) +
           sample->costs * sizeof(Cost);
}

static void release(Arena *arena, Sample *sample) {
    if (!--sample->references) arena_free(arena, sample, bytes(sample));
}

static int make_room(Arena *arena, Bottom *bottom) {
    uint64_t old = bottom->capacity, new = old ? old * 2 : 4;
    if (!arena_enlarge(arena, (void **)&bottom->heap, old * sizeof(Ticket), new * sizeof(Ticket))) return 0;
    bottom->capacity = (uint32_t)new;
    return 1;
}

/* Keep a ticket whose key is below the bound; of more than size the largest goes. */
static void keep(Arena *arena, Bottom *bottom, uint32_t size, Ticket ticket) {
    if (bottom->kept == bottom->capacity && bottom->kept < size && !make_room(arena, bottom)) return;
    ticket.sample->references++;
    if (bottom->kept < size) sift_up(bottom->heap, bottom->kept++, ticket);
    else {
        release(arena, bottom->heap[0].sample);
        sift_down(bottom->heap, size, ticket);
    }
    if (bottom->kept == size) bottom->bound = bottom->heap[0].key;
}

static void shrink(Arena *arena, Bottom *bottom, uint32_t size) {
    while (bottom->kept > size) {
        release(arena, bottom->heap[0].sample);
        bottom->kept--;
        sift_down(bottom->heap, bottom->kept, bottom->heap[bottom->kept]);
    }
    if (bottom->kept == size) bottom->bound = bottom->heap[0].key;
}

/* ---- all functions' ---- */

/* With many functions each keeps less. A bottom-k sample can be cut at any time: what is left is the smaller sample. */
static void shrink_all(Tree *tree, uint32_t fewer) {
    tree->uniform /= fewer;
    tree->per_stratum /= fewer;
    for (uint32_t number = 0; number < tree->codes.count; number++) {
        Code *code = *(Code **)grid_at(&tree->codes, number);
        for (unsigned at = 0; code && code->reservoir && at <= STRATA; at++)
            if (code->reservoir[at]) shrink(&tree->arena, code->reservoir[at], at ? tree->per_stratum : tree->uniform);
    }
}

/* A quarter is kept where there is one function too many, and half of that each time there are twice as many. */
static uint32_t fewer_with_one_more(const Tree *tree) {
    uint64_t bound = tree->limits.components, part = PER_STRATUM / tree->per_stratum;
    if (part == 1) return tree->components == bound ? FEWER : 1;
    return tree->per_stratum > 1 && tree->components == bound * 2 * part / FEWER ? 2 : 1;
}

static Bottom **opened(Tree *tree, Code *code) {
    code->reservoir = arena_alloc(&tree->arena, (STRATA + 1) * sizeof(Bottom *));
    if (!code->reservoir) return NULL;
    uint32_t fewer = fewer_with_one_more(tree);
    if (fewer > 1) shrink_all(tree, fewer);
    tree->components++;
    return code->reservoir;
}

static Bottom *bottom_of(Arena *arena, Bottom **place) {
    if (!*place && (*place = arena_alloc(arena, sizeof(Bottom)))) (*place)->bound = 1ull << 62;
    return *place;
}

/* ---- samples ---- */

static uint32_t length(const Lane *list) {
    uint32_t count = 0;
    for (; list; list = list->next) count++;
    return count;
}

static void copy_callees(Callee *to, const Bag *kids) {
    for (uint32_t at = 0; at < kids->count; at++) {
        const Touch *kid = &kids->items[at];
        int64_t off = kids->changes ? lane_value(kids->changes[at], METRIC_CPU) : 0;
        to[at] = (Callee){kid->node, (int64_t)kid->calls, kid->time, since(kid->time, off)};
    }
}

static Sample *copy(Tree *tree, uint64_t sequence, const Frame *done) {
    Sample sample = {sequence, done->started, done->x, done->events, done->node->number, done->key,
                     1, done->kids.count, done->feature_count, length(done->changes)};
    Sample *new = arena_alloc(&tree->arena, bytes(&sample));
    if (!new) return NULL;
    *new = sample;
    copy_callees(sample_callees(new), &done->kids);
    if (done->feature_count) memcpy(sample_features(new), done->features, done->feature_count * sizeof(Feature));
    Cost *cost = sample_costs(new);
    for (const Lane *lane = done->changes; lane; lane = lane->next)
        *cost++ = (Cost){(int64_t)lane->metric, ((const Change *)lane)->value};
    return new;
}

void reservoir_take(Tree *tree, Code *code, uint64_t sequence, const Frame *done, unsigned bits) {
    Arena *arena = &tree->arena;
    Bottom **reservoir = code->reservoir ? code->reservoir : opened(tree, code);
    Bottom *uniform = reservoir ? bottom_of(arena, &reservoir[0]) : NULL;
    Bottom *stratum = uniform ? bottom_of(arena, &reservoir[1 + bits]) : NULL;
    if (!stratum) return;
    uint64_t key = scramble(sequence ^ tree->seed);
    int drawn = done->key >= 0 && (uint64_t)done->key < uniform->bound, apart = key < stratum->bound;
    if (!drawn && !apart) return;
    Sample *sample = copy(tree, sequence, done);
    if (!sample) return;
    if (drawn) keep(arena, uniform, tree->uniform, (Ticket){(uint64_t)done->key, sequence, sample});
    if (apart) keep(arena, stratum, tree->per_stratum, (Ticket){key, sequence, sample});
    release(arena, sample); /* the copy's own reference, which it had while both parts took theirs */
}
