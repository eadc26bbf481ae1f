#include "reservoir.h"

#include <string.h>

#include "lanes.h"
#include "nodes.h"

/* ---- one bottom-k sample ---- */

static int is_above(const SampleEntry *a, const SampleEntry *b) {
    return a->key != b->key ? a->key > b->key : a->sequence > b->sequence;
}

static void sift_down(SampleEntry *heap, uint32_t size, SampleEntry entry) {
    uint32_t at = 0, below;
    while ((below = 2 * at + 1) < size) {
        if (below + 1 < size && is_above(&heap[below + 1], &heap[below])) below++;
        if (!is_above(&heap[below], &entry)) break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = entry;
}

static void sift_up(SampleEntry *heap, uint32_t at, SampleEntry entry) {
    for (; at && is_above(&entry, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = entry;
}

static uint64_t bytes_of(const Sample *sample) {
    return sizeof(Sample) + sample->callees * sizeof(Callee) + sample->features * sizeof(Feature) +
           sample->costs * sizeof(Cost) + sample->parts * sizeof(Callee);
}

static void release(Arena *arena, Sample *sample) {
    if (!--sample->references) arena_free(arena, sample, bytes_of(sample));
}

static int make_room(Arena *arena, BottomK *bottom) {
    uint64_t old = bottom->capacity, new = old ? old * 2 : 4;
    if (!arena_enlarge(arena, (void **)&bottom->heap, old * sizeof(SampleEntry), new * sizeof(SampleEntry))) return 0;
    bottom->capacity = (uint32_t)new;
    return 1;
}

/* Keep an entry whose key is below the bound. If there are more than `size` then, the largest goes. */
static void keep(Arena *arena, BottomK *bottom, uint32_t size, SampleEntry entry) {
    if (bottom->count == bottom->capacity && bottom->count < size && !make_room(arena, bottom)) return;
    entry.sample->references++;
    if (bottom->count < size) sift_up(bottom->heap, bottom->count++, entry);
    else {
        release(arena, bottom->heap[0].sample);
        sift_down(bottom->heap, size, entry);
    }
    if (bottom->count == size) bottom->bound = bottom->heap[0].key;
}

static void shrink(Arena *arena, BottomK *bottom, uint32_t size) {
    while (bottom->count > size) {
        release(arena, bottom->heap[0].sample);
        bottom->count--;
        sift_down(bottom->heap, bottom->count, bottom->heap[bottom->count]);
    }
    if (bottom->count == size) bottom->bound = bottom->heap[0].key;
}

/* ---- the reservoirs of all functions ---- */

/* The sample of observations stays as large as it is: they are what laws are learnt from. */
static uint32_t uniform_size(const Tree *tree, const Function *function) {
    return function->is_observed ? UNIFORM_SIZE : tree->uniform_size;
}

/* With many functions each keeps less. A bottom-k sample can be cut at any time: what is left is the smaller sample. */
static void shrink_all(Tree *tree, uint32_t divisor) {
    tree->uniform_size /= divisor;
    tree->stratum_size /= divisor;
    for (uint32_t number = 0; number < tree->functions.count; number++) {
        Function *function = function_at(tree, number);
        for (unsigned at = 0; function && function->reservoir && at <= STRATA; at++)
            if (function->reservoir[at])
                shrink(&tree->arena, function->reservoir[at], at ? tree->stratum_size : uniform_size(tree, function));
    }
}

/* By what the sizes are divided when one more function is sampled. A quarter is kept from one function too many on,
 * and half of that each time there are twice as many. */
static uint32_t divisor_with_one_more(const Tree *tree) {
    uint64_t bound = tree->limits.components, divided = STRATUM_SIZE / tree->stratum_size;
    if (divided == 1) return tree->sampled_functions == bound ? SHRINK_FACTOR : 1;
    return tree->stratum_size > 1 && tree->sampled_functions == bound * 2 * divided / SHRINK_FACTOR ? 2 : 1;
}

static BottomK **create(Tree *tree, Function *function) {
    function->reservoir = arena_alloc(&tree->arena, (STRATA + 1) * sizeof(BottomK *));
    if (!function->reservoir) return NULL;
    uint32_t divisor = divisor_with_one_more(tree);
    if (divisor > 1) shrink_all(tree, divisor);
    tree->sampled_functions++;
    return function->reservoir;
}

static BottomK *ensure(Arena *arena, BottomK **place) {
    if (!*place && (*place = arena_alloc(arena, sizeof(BottomK)))) (*place)->bound = 1ull << 62;
    return *place;
}

/* ---- samples ---- */

static uint32_t length_of(const Lane *list) {
    uint32_t count = 0;
    for (; list; list = list->next) count++;
    return count;
}

static void copy_callees(Callee *to, const Descendants *callees) {
    for (uint32_t at = 0; at < callees->count; at++) {
        const Descendant *callee = &callees->items[at];
        int64_t off = callees->changes ? lane_value(callees->changes[at], METRIC_CPU) : 0;
        to[at] = (Callee){callee->node, (int64_t)callee->calls, callee->time, minus(callee->time, off)};
    }
}

static void copy_parts(Callee *to, const Descendants *parts) {
    for (uint32_t at = 0; at < parts->count; at++) {
        const Descendant *part = &parts->items[at];
        to[at] = (Callee){part->node, (int64_t)part->calls, part->time, minus(part->time, part->events)};
    }
}

/* The parts of an observation are kept where it is in the uniform sample. */
static Sample *copy(Tree *tree, uint64_t sequence, const Invocation *completed, int in_uniform) {
    Sample sample = {sequence, completed->started, completed->time, completed->events, completed->node->number,
                     completed->key, minus(completed->waited, completed->consumed), completed->resumes, 1, completed->callees.count,
                     completed->feature_count, length_of(completed->changes), in_uniform ? completed->parts.count : 0};
    Sample *new = arena_alloc(&tree->arena, bytes_of(&sample));
    if (!new) return NULL;
    *new = sample;
    copy_callees(sample_callees(new), &completed->callees);
    if (completed->feature_count)
        memcpy(sample_features(new), completed->features, completed->feature_count * sizeof(Feature));
    Cost *cost = sample_costs(new);
    for (const Lane *lane = completed->changes; lane; lane = lane->next)
        *cost++ = (Cost){(int64_t)lane->metric, ((const Change *)lane)->value};
    if (new->parts) copy_parts(sample_parts(new), &completed->parts);
    return new;
}

void reservoir_take(Tree *tree, Function *function, uint64_t sequence, const Invocation *completed, unsigned stratum) {
    Arena *arena = &tree->arena;
    BottomK **reservoir = function->reservoir ? function->reservoir : create(tree, function);
    BottomK *uniform = reservoir ? ensure(arena, &reservoir[0]) : NULL;
    BottomK *stratified = uniform ? ensure(arena, &reservoir[1 + stratum]) : NULL;
    if (!stratified) return;
    uint64_t key = scramble(sequence ^ tree->seed);
    int in_uniform = completed->key >= 0 && (uint64_t)completed->key < uniform->bound, in_stratum = key < stratified->bound;
    if (!in_uniform && !in_stratum) return;
    Sample *sample = copy(tree, sequence, completed, in_uniform);
    if (!sample) return;
    if (in_uniform) keep(arena, uniform, uniform_size(tree, function), (SampleEntry){(uint64_t)completed->key, sequence, sample});
    if (in_stratum) keep(arena, stratified, tree->stratum_size, (SampleEntry){key, sequence, sample});
    release(arena, sample); /* the copy's own reference, which it had while both parts took theirs */
}
