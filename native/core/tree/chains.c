#include "chains.h"

#include "descendants.h"
#include "pairs.h"
#include "repeats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- whether all sums are there to be added to ---- */

static int matches(const Link *link, const Descendant *descendant) {
    return link->node == descendant->node && link->calls == descendant->calls &&
           (int64_t)link->events == descendant->events;
}

/* Whether the links of the descendants lie side by side, and the run of each is that of its descendant. */
static int in_runs(const Node *node, const Descendant *callee, const Descendants *deeper) {
    const Link *link = node->links + node->repeated.first_link;
    if ((uint64_t)node->repeated.first_link + node->repeated.count > node->link_count || !matches(link, callee)) return 0;
    for (uint32_t at = 0; at < deeper->count; at++)
        if (!matches(++link, &deeper->items[at])) return 0;
    return 1;
}

/* Make room for the sums of times of the deeper descendants. 0 if there are too many of them, or no memory. */
static int ensure_sums(Tree *tree, RepeatedCall *call, const Descendants *deeper) {
    if (!deeper->count || call->deeper) return 1;
    if (deeper->count > MAX_REPEATED_DESCENDANTS) return 0;
    return (call->deeper = arena_alloc(&tree->arena, MAX_REPEATED_DESCENDANTS / 4 * sizeof(FourDescendants))) != NULL;
}

static __attribute__((noinline)) int resolve(Tree *tree, Node *node, const Descendant *callee, const Descendants *deeper) {
    return in_runs(node, callee, deeper) && pairs_find(tree, node, callee->node) &&
           ensure_sums(tree, &node->repeated, deeper);
}

/* ---- times ---- */

/* Add the times of deeper descendants, which are below 2^31, of an invocation that took x. */
static void add_times(FourDescendants *sums, const uint64_t *times, uint32_t count, uint64_t x) {
    for (uint32_t at = 0; at < count; at++) {
        FourDescendants *four = &sums[at / 4];
        uint64_t y = times[at];
        four->y[at % 4] += y;
        four->yy[at % 4] += y * y;
        four->yx[at % 4] += y * x;
    }
}

#if defined(__x86_64__)
static inline __attribute__((target("avx2"), always_inline)) void add_four(uint64_t *sums, __m256i more) {
    _mm256_storeu_si256((__m256i *)sums, _mm256_add_epi64(_mm256_loadu_si256((const __m256i *)sums), more));
}
/* As add_times, four at once. Some of the last four may be no times at all: their sums mean nothing. */
static __attribute__((target("avx2"))) void add_times_wide(FourDescendants *sums, const uint64_t *times,
                                                           uint32_t count, uint64_t x) {
    const __m256i factor = _mm256_set1_epi64x((long long)x);
    for (const FourDescendants *end = sums + (count + 3) / 4; sums < end; sums++, times += 4) {
        __m256i time = _mm256_loadu_si256((const __m256i *)times);
        add_four(sums->y, time);
        add_four(sums->yy, _mm256_mul_epu32(time, time));
        add_four(sums->yx, _mm256_mul_epu32(time, factor));
    }
}
#endif

static inline void add_all_times(FourDescendants *sums, const uint64_t *times, uint32_t count, uint64_t x) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_times_wide(sums, times, count, x);
        return;
    }
#endif
    add_times(sums, times, count, x);
}

/* ---- lending ---- */

/* Whether the invocation has only one callee, and its deeper descendants are a loan, level by level: then it may
 * lend in turn. */
static int is_link_of_chain(const Invocation *completed) {
    const Descendant *callee = completed->callees.items;
    const Descendants *deeper = &completed->deeper;
    if (completed->callees.count != 1 || callee->depth != completed->node->depth + 1) return 0;
    return !deeper->count || (deeper->loan && deeper->items->depth == callee->depth + 1);
}

static inline int may_lend(const Invocation *completed, const Invocation *caller) {
    return !caller->deeper.count && caller->node == completed->node->repeated.caller && !completed->changes;
}

static inline uint64_t time_bits_of(const Invocation *completed) {
    return (uint64_t)completed->callees.items->time | completed->deeper.time_bits;
}

/* Put the callee in front of what is lent already. Field by field, because a copy of what was just written in parts
 * would wait for the parts. */
static inline Descendant *extend(const Stack *stack, const Descendant *callee) {
    Descendant *top = &stack->chain[stack->height + 1];
    *top = (Descendant){callee->node, callee->depth, callee->calls, callee->time, callee->events};
    stack->times[stack->height + 1] = (uint64_t)callee->time;
    return top;
}

static inline void lend(const Invocation *completed, Invocation *caller, Descendant *top) {
    const RepeatedCall *call = &completed->node->repeated;
    if (call->lent_count) descendants_lend(&caller->deeper, top, call->lent_count, call->lent, time_bits_of(completed));
}

int chains_begin(Tree *tree, const Invocation *completed, const Invocation *caller) {
    const Descendant *callee = completed->callees.items;
    Node *node = completed->node;
    uint32_t count = completed->deeper.count + 1, max = tree->max_distance - 1;
    if (completed->changes || !is_link_of_chain(completed)) { /* batches have no changes */
        node->repeated.count = 0;
        return 0;
    }
    node->repeated = (RepeatedCall){.borrowed = completed->deeper.loan, .lent = ++tree->loans, .callee = *callee,
                                    .events = completed->events, .count = count, .lent_count = count < max ? count : max,
                                    .deeper = node->repeated.deeper};
    if (caller && caller->node->depth + 1 == node->depth) node->repeated.caller = caller->node;
    return 1;
}

int chains_lend(const Stack *stack, const Invocation *completed, Invocation *caller) {
    if (!stack || !may_lend(completed, caller)) return 0;
    lend(completed, caller, extend(stack, completed->callees.items));
    return 1;
}

/* ---- the same again ---- */

/* Whether the invocation has one callee, and this and all below it is what the last one had. */
static inline int is_same(const RepeatedCall *call, const Invocation *completed) {
    const Descendant *callee = completed->callees.items;
    const Descendants *deeper = &completed->deeper;
    return completed->callees.count == 1 && call->count == deeper->count + 1 && call->borrowed == deeper->loan &&
           call->callee.node == callee->node && call->callee.calls == callee->calls &&
           call->callee.events == callee->events && call->events == completed->events;
}

static inline void add(RepeatedCall *call, uint64_t x, uint64_t y) {
    call->n++;
    call->x += x;
    call->xx += x * x;
    call->y += y;
    call->yy += y * y;
    call->yx += y * x;
}

int chains_repeat(Tree *tree, const Stack *stack, const Invocation *completed, Invocation *caller) {
    Node *node = completed->node;
    RepeatedCall *call = &node->repeated;
    const Descendant *callee = completed->callees.items;
    if (!is_same(call, completed) || (caller && !may_lend(completed, caller))) return 0;
    uint64_t x = (uint64_t)completed->time, bits = time_bits_of(completed) | x;
    if (bits >> 31) return 0;
    if (!call->is_resolved && !(call->is_resolved = (uint32_t)resolve(tree, node, callee, &completed->deeper))) return 0;
    if ((call->bound + bits * bits) >> 63) repeats_settle_calls(tree, node); /* before a sum overflows */
    call->bound += bits * bits;
    add(call, x, (uint64_t)callee->time);
    if (call->count > 1) add_all_times(call->deeper, &stack->times[stack->height + 2], call->count - 1, x);
    Descendant *top = extend(stack, callee);
    if (caller) lend(completed, caller, top);
    return 1;
}
