#include "spans.h"

#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "lanes.h"

enum { LEAST_ROOM = 64, BRIEF_SHIFT = 10 };

/* ---- what a stack remembers ---- */

int spans_make_room(Tree *tree, Stack *stack) {
    uint64_t old = stack->span_room, new = old ? old * 2 : LEAST_ROOM;
    if (new > MOST_SPANS_OPEN) return 0; /* recursion that is deep and wide: what comes now is left out */
    if (!arena_enlarge(&tree->arena, (void **)&stack->spans, old * sizeof(Span), new * sizeof(Span))) return 0;
    stack->span_room = (uint32_t)new;
    return 1;
}

/* The k-th largest of n times (Hoare's selection), 1 <= k <= n. They are put in another order. */
static int64_t largest(int64_t *times, uint32_t n, uint32_t k) {
    int64_t low = 0, high = (int64_t)n - 1, wanted = (int64_t)k - 1;
    while (low < high) {
        int64_t middle = times[(low + high) / 2], from = low, to = high;
        while (from <= to) {
            while (times[from] > middle) from++;
            while (times[to] < middle) to--;
            if (from > to) break;
            int64_t between = times[from];
            times[from++] = times[to];
            times[to--] = between;
        }
        if (wanted <= to) high = to;
        else if (wanted >= from) low = from;
        else break;
    }
    return times[wanted];
}

/* The time of the MOST_SPANS-th longest of n spans, 0 if there are fewer. */
static int64_t bound_of(Arena *arena, const Span *spans, uint32_t n) {
    int64_t *times = n > MOST_SPANS ? arena_alloc(arena, n * sizeof(int64_t)) : NULL;
    if (!times) return 0;
    for (uint32_t at = 0; at < n; at++) times[at] = spans[at].time;
    int64_t bound = largest(times, n, MOST_SPANS);
    arena_free(arena, times, n * sizeof(int64_t));
    return bound;
}

/* Copy the longest of n spans, MOST_SPANS at most, in their order, of equal ones the first; how many they are. from and to may
 * be the same place. */
static uint32_t longest(Span *to, const Span *from, uint32_t n, int64_t bound) {
    uint32_t equal = MOST_SPANS, count = 0;
    for (uint32_t at = 0; at < n; at++) equal -= from[at].time > bound;
    for (uint32_t at = 0; at < n && count < MOST_SPANS; at++)
        if (from[at].time > bound || (from[at].time == bound && equal && equal--)) to[count++] = from[at];
    return count;
}

void spans_more(Tree *tree, Stack *stack, Frame *caller) {
    Span *within = stack->spans + caller->first_span;
    uint32_t count = stack->span_count - caller->first_span;
    int64_t bound = bound_of(&tree->arena, within, count);
    stack->span_count = caller->first_span + longest(within, within, count, bound);
    if (bound > caller->least_span) caller->least_span = bound;
}

/* ---- what is kept ---- */

static int by_start(const void *a, const void *b) {
    const Span *x = a, *y = b;
    if (x->started != y->started) return x->started < y->started ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Spans callers first, from the start of the invocation on, each with the place of its caller in them for its depth; -1
 * is the invocation itself. Whoever died without an event is no span: what it called is its caller's. */
static void nest(Span *spans, uint32_t count, int64_t start) {
    int32_t depths[MOST_SPANS];
    qsort(spans, count, sizeof(Span), by_start);
    for (uint32_t at = 0; at < count; at++) {
        Span *span = &spans[at];
        span->started = since(span->started, start);
        depths[at] = span->depth;
        int32_t above = (int32_t)at - 1;
        while (above >= 0 &&
               (depths[above] >= depths[at] || plus(spans[above].started, spans[above].time) <= span->started))
            above = spans[above].depth;
        span->depth = above;
    }
}

static void forget(Tree *tree, Worst *one) {
    arena_free(&tree->arena, one->spans, one->count * sizeof(Span));
    tree->spans -= one->count;
    one->spans = NULL;
    one->count = 0;
}

/* The one that goes first: of the shortest the last. */
static Worst *shortest(Worsts *all) {
    Worst *least = all->of;
    for (Worst *one = all->of; one < all->of + all->count; one++)
        if (one->time < least->time || (one->time == least->time && one->sequence > least->sequence)) least = one;
    return least;
}

static Worst *place_for(Tree *tree, Code *code) {
    if (!code->worst && !(code->worst = arena_alloc(&tree->arena, sizeof(Worsts)))) return NULL;
    if (code->worst->count < WORST) return &code->worst->of[code->worst->count++];
    Worst *least = shortest(code->worst);
    forget(tree, least);
    return least;
}

/* ---- the bound of all of them: functions of least total time keep none any more ---- */

static int by_total(const void *a, const void *b) {
    const Code *x = *(Code *const *)a, *y = *(Code *const *)b;
    if (x->total_time != y->total_time) return x->total_time < y->total_time ? -1 : 1;
    return (x->number < y->number) - (x->number > y->number);
}

static uint32_t with_spans(const Tree *tree, Code **some) {
    uint32_t count = 0;
    for (uint32_t number = 0; number < tree->codes.count; number++) {
        Code *code = *(Code **)grid_at(&tree->codes, number);
        if (code && code->worst && !code->spanless) some[count++] = code;
    }
    return count;
}

static void halve(Tree *tree) {
    Code **some = malloc(tree->codes.count * sizeof(Code *));
    uint32_t count = some ? with_spans(tree, some) : 0;
    qsort(some, count, sizeof(Code *), by_total);
    for (uint32_t at = 0; at < count && tree->spans > tree->limits.spans / 2; at++) {
        some[at]->spanless = 1;
        for (uint32_t each = 0; each < some[at]->worst->count; each++) forget(tree, &some[at]->worst->of[each]);
    }
    free(some);
}

static void copy(Tree *tree, const Stack *stack, const Frame *done, Worst *to) {
    Span some[MOST_SPANS];
    const Span *within = stack->spans + done->first_span;
    uint32_t count = stack->span_count - done->first_span;
    uint32_t kept = count ? longest(some, within, count, bound_of(&tree->arena, within, count)) : 0;
    to->spans = kept ? arena_alloc(&tree->arena, kept * sizeof(Span)) : NULL;
    if (!to->spans) return;
    nest(some, kept, done->segment);
    memcpy(to->spans, some, kept * sizeof(Span));
    to->count = kept;
    tree->spans += kept;
    if (tree->spans > tree->limits.spans) halve(tree);
}

void spans_keep(Tree *tree, const Stack *stack, const Frame *done) {
    Code *code = done->node->sums;
    Worst *place = place_for(tree, code);
    if (!place) return;
    int64_t off = lane_value(done->changes, METRIC_CPU);
    *place = (Worst){tree->calls, done->started, done->x, since(done->x, off), done->events, done->node->number, 0, NULL};
    if (!code->spanless) copy(tree, stack, done, place);
    if (code->worst->count < WORST) return;
    code->worst_bound = shortest(code->worst)->time;
    uint64_t brief = (uint64_t)code->worst_bound >> BRIEF_SHIFT;
    done->node->brief = brief < UINT32_MAX ? (uint32_t)brief : UINT32_MAX;
}
