#include "spans.h"

#include <stdlib.h>
#include <string.h>

#include "lanes.h"
#include "nodes.h"

enum { MIN_CAPACITY = 64, MIN_SPAN_SHIFT = 10 }; /* spans below a 1024th are not taken */

/* ---- what a stack remembers ---- */

int spans_make_room(Tree *tree, Stack *stack) {
    uint64_t old = stack->span_capacity, new = old ? old * 2 : MIN_CAPACITY;
    if (new > MAX_SPANS_PER_STACK) return 0; /* the recursion is deep and wide: what comes now is left out */
    if (!arena_enlarge(&tree->arena, (void **)&stack->spans, old * sizeof(Span), new * sizeof(Span))) return 0;
    stack->span_capacity = (uint32_t)new;
    return 1;
}

/* The k-th largest of n times (Hoare's selection), 1 <= k <= n. This changes their order. */
static int64_t select_largest(int64_t *times, uint32_t n, uint32_t k) {
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

/* The time of the MAX_SPANS-th longest of n spans, 0 if there are fewer. */
static int64_t bound_of(Arena *arena, const Span *spans, uint32_t n) {
    int64_t *times = n > MAX_SPANS ? arena_alloc(arena, n * sizeof(int64_t)) : NULL;
    if (!times) return 0;
    for (uint32_t at = 0; at < n; at++) times[at] = spans[at].time;
    int64_t bound = select_largest(times, n, MAX_SPANS);
    arena_free(arena, times, n * sizeof(int64_t));
    return bound;
}

/* Copy the longest of n spans in their order, at most MAX_SPANS, and of equal ones the first. Gives how many they
 * are. `from` and `to` may be the same place. */
static uint32_t copy_longest(Span *to, const Span *from, uint32_t n, int64_t bound) {
    uint32_t equal = MAX_SPANS, count = 0;
    for (uint32_t at = 0; at < n; at++) equal -= from[at].time > bound;
    for (uint32_t at = 0; at < n && count < MAX_SPANS; at++)
        if (from[at].time > bound || (from[at].time == bound && equal && equal--)) to[count++] = from[at];
    return count;
}

void spans_keep_longest(Tree *tree, Stack *stack, Invocation *caller) {
    Span *within = stack->spans + caller->first_span;
    uint32_t count = stack->span_count - caller->first_span;
    int64_t bound = bound_of(&tree->arena, within, count);
    stack->span_count = caller->first_span + copy_longest(within, within, count, bound);
    if (bound > caller->min_span_time) caller->min_span_time = bound;
}

/* ---- what is kept of a worst invocation ---- */

static int by_start(const void *a, const void *b) {
    const Span *x = a, *y = b;
    if (x->started != y->started) return x->started < y->started ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Sort spans callers first, count their starts from that of the invocation, and replace each depth by the index of
 * the caller's span (-1 is the invocation itself). What died without an event has no span: its callees' spans are
 * its caller's. */
static void nest(Span *spans, uint32_t count, int64_t start) {
    int32_t depths[MAX_SPANS];
    qsort(spans, count, sizeof(Span), by_start);
    for (uint32_t at = 0; at < count; at++) {
        Span *span = &spans[at];
        span->started = minus(span->started, start);
        depths[at] = span->depth;
        int32_t above = (int32_t)at - 1;
        while (above >= 0 &&
               (depths[above] >= depths[at] || plus(spans[above].started, spans[above].time) <= span->started))
            above = spans[above].depth;
        span->depth = above;
    }
}

static void free_spans(Tree *tree, WorstInvocation *worst) {
    arena_free(&tree->arena, worst->spans, worst->count * sizeof(Span));
    tree->span_count -= worst->count;
    worst->spans = NULL;
    worst->count = 0;
}

/* The one that is replaced first: the last of the shortest ones. */
static WorstInvocation *shortest(WorstList *list) {
    WorstInvocation *least = list->items;
    for (WorstInvocation *each = list->items; each < list->items + list->count; each++)
        if (each->time < least->time || (each->time == least->time && each->sequence > least->sequence)) least = each;
    return least;
}

/* A place for one more of the worst invocations; NULL if the arena is full. */
static WorstInvocation *make_place(Tree *tree, Function *function) {
    if (!function->worst && !(function->worst = arena_alloc(&tree->arena, sizeof(WorstList)))) return NULL;
    if (function->worst->count < MAX_WORST) return &function->worst->items[function->worst->count++];
    WorstInvocation *least = shortest(function->worst);
    free_spans(tree, least);
    return least;
}

/* ---- the bound over all functions: those of least total time keep no spans any more ---- */

static int by_total(const void *a, const void *b) {
    const Function *x = *(Function *const *)a, *y = *(Function *const *)b;
    if (x->total_time != y->total_time) return x->total_time < y->total_time ? -1 : 1;
    return (x->number < y->number) - (x->number > y->number);
}

static uint32_t find_with_spans(const Tree *tree, Function **functions) {
    uint32_t count = 0;
    for (uint32_t number = 0; number < tree->functions.count; number++) {
        Function *function = function_at(tree, number);
        if (function && function->worst && !function->spans_dropped) functions[count++] = function;
    }
    return count;
}

static void drop_half(Tree *tree) {
    Function **functions = malloc(tree->functions.count * sizeof(Function *));
    uint32_t count = functions ? find_with_spans(tree, functions) : 0;
    if (count) qsort(functions, count, sizeof(Function *), by_total);
    for (uint32_t at = 0; at < count && tree->span_count > tree->limits.spans / 2; at++) {
        functions[at]->spans_dropped = 1;
        for (uint32_t each = 0; each < functions[at]->worst->count; each++)
            free_spans(tree, &functions[at]->worst->items[each]);
    }
    free(functions);
}

static void copy_within(Tree *tree, const Stack *stack, const Invocation *completed, WorstInvocation *to) {
    Span longest[MAX_SPANS];
    const Span *within = stack->spans + completed->first_span;
    uint32_t count = stack->span_count - completed->first_span;
    uint32_t kept = count ? copy_longest(longest, within, count, bound_of(&tree->arena, within, count)) : 0;
    to->spans = kept ? arena_alloc(&tree->arena, kept * sizeof(Span)) : NULL;
    if (!to->spans) return;
    nest(longest, kept, completed->segment_start);
    memcpy(to->spans, longest, kept * sizeof(Span));
    to->count = kept;
    tree->span_count += kept;
    if (tree->span_count > tree->limits.spans) drop_half(tree);
}

void spans_copy(Tree *tree, const Stack *stack, const Invocation *completed) {
    Function *function = completed->node->function;
    WorstInvocation *place = make_place(tree, function);
    if (!place) return;
    int64_t off = lane_value(completed->changes, METRIC_CPU);
    *place = (WorstInvocation){tree->calls, completed->started, completed->time, minus(completed->time, off),
                               completed->events, completed->node->number, 0, NULL};
    if (!function->spans_dropped) copy_within(tree, stack, completed, place);
    if (function->worst->count < MAX_WORST) return;
    function->worst_bound = shortest(function->worst)->time;
    uint64_t min_span_time = (uint64_t)function->worst_bound >> MIN_SPAN_SHIFT;
    completed->node->min_span_time = min_span_time < UINT32_MAX ? (uint32_t)min_span_time : UINT32_MAX;
}
