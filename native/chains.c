#include "chains.h"

#include "bag.h"
#include "runs.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- the same again ---- */

/* Of a bag that is empty or lent to. */
static inline int same(const Last *last, const Touch *kid, const Bag *deeper) {
    return last->count == deeper->count + 1 && last->below == deeper->lent && last->kid == kid->node &&
           last->calls == kid->calls && last->events == kid->events;
}

static int matches(const Link *link, const Touch *touch) {
    return link->node == touch->node && link->calls == touch->calls && (int64_t)link->events == touch->events;
}

/* Whether the run of each link is that of the touch at its place. */
static __attribute__((noinline)) int known(const Node *node, const Touch *kid, const Bag *deeper) {
    const Link *link = node->links + node->last.first;
    if ((uint64_t)node->last.first + node->last.count > node->link_count || !matches(link, kid)) return 0;
    for (uint32_t at = 0; at < deeper->count; at++)
        if (!matches(++link, &deeper->items[at])) return 0;
    return 1;
}

/* ---- times ---- */

/* Add times below 2^31 of touches to the links that lie in the same order. All sums that must stay below 2^63, or-ed. */
static uint64_t add_times(Link *link, const Touch *touch, uint32_t count, uint64_t x) {
    uint64_t seen = 0;
    for (const Link *end = link + count; link < end; link++, touch++) {
        uint64_t time = (uint64_t)touch->time;
        link->time += (int64_t)time;
        link->time_yy += time * time;
        link->time_yx += time * x;
        seen |= link->time_yy | link->time_yx;
    }
    return seen;
}

#if defined(__x86_64__)
/* The same, where the four sums of a link are a register: time is added once, never, as often as itself, and x times. */
static inline __attribute__((target("avx2"), always_inline)) __m256i add_wide(Link *link, const Touch *touch, __m256i factors,
                                                                             __m256i seen) {
    __m256i time = _mm256_set1_epi64x(touch->time), *sums = (__m256i *)&link->time;
    __m256i more = _mm256_mul_epu32(time, _mm256_blend_epi32(factors, time, 0x30));
    __m256i sum = _mm256_add_epi64(_mm256_loadu_si256(sums), more);
    _mm256_storeu_si256(sums, sum);
    return _mm256_or_si256(seen, sum);
}
static __attribute__((target("avx2"))) uint64_t add_times_wide(Link *link, const Touch *touch, uint32_t count, uint64_t x) {
    const __m256i factors = _mm256_set_epi64x((long long)x, 0, 0, 1);
    const Touch *end = touch + count, *fours = touch + count / 4 * 4;
    __m256i seen = _mm256_setzero_si256();
    for (; touch < fours; touch += 4, link += 4) {
        seen = add_wide(link, touch, factors, seen);
        seen = add_wide(link + 1, touch + 1, factors, seen);
        seen = add_wide(link + 2, touch + 2, factors, seen);
        seen = add_wide(link + 3, touch + 3, factors, seen);
    }
    for (; touch < end; touch++, link++) seen = add_wide(link, touch, factors, seen);
    __m128i products = _mm256_extracti128_si256(seen, 1);
    return (uint64_t)(_mm_extract_epi64(products, 0) | _mm_extract_epi64(products, 1));
}
#endif

static inline uint64_t add_all_times(Link *link, const Touch *touch, uint32_t count, uint64_t x) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return add_times_wide(link, touch, count, x);
#endif
    return add_times(link, touch, count, x);
}

static __attribute__((noinline)) void move_on(Tree *tree, Node *node) {
    for (Link *link = node->links + node->last.first, *end = link + node->last.count; link < end; link++)
        if ((link->time_yy | link->time_yx) >> 63) run_move_on(tree, node, link);
}

/* ---- lending ---- */

/* Whether the invocation has but one kid and the rest was lent, level by level: then it may lend in its turn. */
static int in_line(const Frame *done) {
    const Touch *kid = done->kids.items;
    const Bag *deeper = &done->deeper;
    if (done->kids.count != 1 || kid->depth != done->node->depth + 1) return 0;
    return !deeper->count || (deeper->lent && deeper->items->depth == kid->depth + 1);
}

static inline int may_lend(const Frame *done, const Frame *caller) {
    return !caller->deeper.count && caller->node == done->node->last.caller && !done->changes;
}

static inline uint64_t times_of(const Frame *done) { return (uint64_t)done->kids.items->time | done->deeper.times; }

/* The kid, in front of what is lent already. Field by field: a copy of what was just written in parts waits for the parts. */
static inline Touch *extended(const Stack *stack, const Touch *kid) {
    Touch *top = &stack->chain[stack->height + 1];
    *top = (Touch){kid->node, kid->depth, kid->calls, kid->time, kid->events};
    return top;
}

static inline void lend(const Frame *done, Frame *caller, Touch *top) {
    const Last *last = &done->node->last;
    if (last->lends) bag_lend(&caller->deeper, top, last->lends, last->up, times_of(done));
}

int chains_begin(Tree *tree, const Frame *done, const Frame *caller) {
    const Touch *kid = done->kids.items;
    Node *node = done->node;
    uint32_t count = done->deeper.count + 1, most = tree->max_distance - 1;
    if (!in_line(done)) {
        node->last.count = 0;
        return 0;
    }
    node->last = (Last){.below = done->deeper.lent, .up = ++tree->chains, .calls = kid->calls, .events = kid->events,
                        .kid = kid->node, .count = count, .lends = count < most ? count : most};
    if (caller && caller->node->depth + 1 == node->depth) node->last.caller = caller->node;
    return 1;
}

int chains_lend(const Stack *stack, const Frame *done, Frame *caller) {
    if (!stack || !may_lend(done, caller)) return 0;
    lend(done, caller, extended(stack, done->kids.items));
    return 1;
}

/* ---- the same again ---- */

int chains_repeat(Tree *tree, const Stack *stack, const Frame *done, Frame *caller) {
    Node *node = done->node;
    Last *last = &node->last;
    const Touch *kid = done->kids.items;
    const Bag *deeper = &done->deeper;
    uint64_t x = (uint64_t)done->x;
    if (!same(last, kid, deeper) || done->kids.count != 1 || (times_of(done) | x) >> 31) return 0;
    if (!stack || (caller && !may_lend(done, caller))) return 0;
    if (!last->known && !(last->known = (uint64_t)known(node, kid, deeper))) return 0;
    Touch *top = extended(stack, kid);
    if (add_all_times(node->links + last->first, top, last->count, x) >> 63) move_on(tree, node);
    last->repeats++;
    last->ancestor_events += (uint64_t)done->events;
    if (caller) lend(done, caller, top);
    return 1;
}
