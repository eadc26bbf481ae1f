#include "chains.h"

#include "bag.h"
#include "pairs.h"
#include "repeats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- what is there to be added to ---- */

static int matches(const Link *link, const Touch *touch) {
    return link->node == touch->node && link->calls == touch->calls && (int64_t)link->events == touch->events;
}

/* Whether the run of each link is that of the touch at its place. */
static int in_runs(const Node *node, const Touch *kid, const Bag *deeper) {
    const Link *link = node->links + node->last.first;
    if ((uint64_t)node->last.first + node->last.count > node->link_count || !matches(link, kid)) return 0;
    for (uint32_t at = 0; at < deeper->count; at++)
        if (!matches(++link, &deeper->items[at])) return 0;
    return 1;
}

/* A place for the sums of times of the deeper ones. */
static int with_sums(Tree *tree, Last *last, const Bag *deeper) {
    if (!deeper->count || last->deeper) return 1;
    if (deeper->count > BELOW) return 0;
    return (last->deeper = arena_alloc(&tree->arena, BELOW / 4 * sizeof(Below))) != NULL;
}

static __attribute__((noinline)) int known(Tree *tree, Node *node, const Touch *kid, const Bag *deeper) {
    return in_runs(node, kid, deeper) && pairs_find(tree, node, kid->node) && with_sums(tree, &node->last, deeper);
}

/* ---- times ---- */

/* Add times below 2^31 of deeper ones, of an invocation that took x. */
static void add_times(Below *sums, const uint64_t *times, uint32_t count, uint64_t x) {
    for (uint32_t at = 0; at < count; at++) {
        Below *four = &sums[at / 4];
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
/* The same, four at once. Of the last four some may be none of them: their sums mean nothing. */
static __attribute__((target("avx2"))) void add_times_wide(Below *sums, const uint64_t *times, uint32_t count, uint64_t x) {
    const __m256i factor = _mm256_set1_epi64x((long long)x);
    for (const Below *end = sums + (count + 3) / 4; sums < end; sums++, times += 4) {
        __m256i time = _mm256_loadu_si256((const __m256i *)times);
        add_four(sums->y, time);
        add_four(sums->yy, _mm256_mul_epu32(time, time));
        add_four(sums->yx, _mm256_mul_epu32(time, factor));
    }
}
#endif

static inline void add_all_times(Below *sums, const uint64_t *times, uint32_t count, uint64_t x) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_times_wide(sums, times, count, x);
        return;
    }
#endif
    add_times(sums, times, count, x);
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
    stack->times[stack->height + 1] = (uint64_t)kid->time;
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
    if (done->changes || !in_line(done)) { /* batches are without changes, see moments.h */
        node->last.count = 0;
        return 0;
    }
    node->last = (Last){.below = done->deeper.lent, .up = ++tree->chains, .kid = *kid, .events = done->events, .count = count,
                        .lends = count < most ? count : most, .deeper = node->last.deeper};
    if (caller && caller->node->depth + 1 == node->depth) node->last.caller = caller->node;
    return 1;
}

int chains_lend(const Stack *stack, const Frame *done, Frame *caller) {
    if (!stack || !may_lend(done, caller)) return 0;
    lend(done, caller, extended(stack, done->kids.items));
    return 1;
}

/* ---- the same again ---- */

/* Whether the invocation has one kid, and that and all below is what the last one had. */
static inline int same(const Last *last, const Frame *done) {
    const Touch *kid = done->kids.items;
    const Bag *deeper = &done->deeper;
    return done->kids.count == 1 && last->count == deeper->count + 1 && last->below == deeper->lent &&
           last->kid.node == kid->node && last->kid.calls == kid->calls && last->kid.events == kid->events &&
           last->events == done->events;
}

static inline void add(Last *last, uint64_t x, uint64_t y) {
    last->repeats++;
    last->x += x;
    last->xx += x * x;
    last->y += y;
    last->yy += y * y;
    last->yx += y * x;
}

int chains_repeat(Tree *tree, const Stack *stack, const Frame *done, Frame *caller) {
    Node *node = done->node;
    Last *last = &node->last;
    const Touch *kid = done->kids.items;
    if (!same(last, done) || (caller && !may_lend(done, caller))) return 0;
    uint64_t x = (uint64_t)done->x, most = times_of(done) | x;
    if (most >> 31) return 0;
    if (!last->known && !(last->known = (uint32_t)known(tree, node, kid, &done->deeper))) return 0;
    if ((last->bound + most * most) >> 63) repeats_settle_node(tree, node); /* before it overflows */
    last->bound += most * most;
    add(last, x, (uint64_t)kid->time);
    if (last->count > 1) add_all_times(last->deeper, &stack->times[stack->height + 2], last->count - 1, x);
    Touch *top = extended(stack, kid);
    if (caller) lend(done, caller, top);
    return 1;
}
