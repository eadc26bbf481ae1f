/* The nested spans of each function's worst invocations: which callee, when, how long, arbitrarily deep.
 *
 * A stack remembers the spans that completed on it lately, callees before callers, so those within the top invocation
 * are the last ones. What an invocation hands on to its caller is bounded: of MAX_SPANS_PER_CALLER spans the MAX_SPANS
 * longest stay, and shorter ones than these are not taken any more; nor are those below a 1024th of what would be among
 * the function's worst. When an invocation returns that is among the MAX_WORST longest of its function, which is rare,
 * its spans are copied.
 *
 * Each segment of a generator or coroutine is a span of whoever resumed it; one that was suspended has no spans of its
 * own.
 *
 * Ownership: the arena's. Threads: one at a time. Cost: two comparisons, and 24 bytes written for a span that is long
 * enough.
 */
#ifndef PERFLAW_SPANS_H
#define PERFLAW_SPANS_H

#include "tree.h"

enum { MAX_WORST = 8, MAX_SPANS = 256, MAX_SPANS_PER_CALLER = 1024, MAX_SPANS_PER_STACK = 1 << 15 };

/* A call that has completed within an open one. depth: height of the stack; of a kept span, the index of its
 * caller's span, or -1 for the invocation itself. */
struct Span {
    int32_t node, depth;
    int64_t started, time;
};
/* One of the longest invocations of a function, and the spans within it, callers first. */
typedef struct WorstInvocation {
    uint64_t sequence;
    int64_t started, time, cpu, events;
    int32_t node;
    uint32_t count;
    Span *spans;
} WorstInvocation;
struct WorstList {
    uint32_t count;
    WorstInvocation items[MAX_WORST]; /* in no order */
};

/* The slow ways: keep only the longest spans of a caller; make room for one more span (0 if there is none); copy the
 * spans of a completed invocation. */
void spans_keep_longest(Tree *tree, Stack *stack, Invocation *caller);
int spans_make_room(Tree *tree, Stack *stack);
void spans_copy(Tree *tree, const Stack *stack, const Invocation *completed);

/* An invocation begins, or goes on. */
static inline void spans_begin(const Stack *stack, Invocation *top) { top->first_span = stack->span_count; }

/* The top invocation returns or is suspended, `time` after its last (re)entry. That is a span of its caller's; if it
 * is too short, so is everything within it. caller: NULL for the root, which has no use for it. */
static inline void spans_end(Tree *tree, Stack *stack, const Invocation *top, Invocation *caller, int64_t time) {
    if (!caller || time <= caller->min_span_time ||
        (stack->span_count == stack->span_capacity && !spans_make_room(tree, stack))) {
        stack->span_count = top->first_span;
        return;
    }
    stack->spans[stack->span_count++] = (Span){top->slot->number, (int32_t)stack->height, top->segment_start, time};
    if (stack->span_count - caller->first_span > MAX_SPANS_PER_CALLER) spans_keep_longest(tree, stack, caller);
}

/* The top invocation has completed, and the spans within it are still there. */
static inline void spans_complete(Tree *tree, const Stack *stack, const Invocation *top) {
    if (top->time > top->node->function->worst_bound && top->kind == PLAIN) spans_copy(tree, stack, top);
}

#endif
