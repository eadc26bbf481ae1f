/* The nested spans of each function's worst invocations: which callee, when, how long, arbitrarily deep.
 *
 * A stack remembers the spans that completed on it lately, callees before callers, so those within the top invocation are
 * the last ones. What an invocation hands on to its caller is bounded: of MOST_SPANS_APART the MOST_SPANS longest stay, and
 * shorter ones than these are not taken any more; nor are those below a 1024th of what would be among the function's
 * worst. When an invocation that is among the WORST longest of its function returns, which is rare, they are copied.
 *
 * Generators and coroutines: each segment is a span of whoever resumed it; what was suspended has no spans of its own.
 * Ownership: the arena's. Threads: one at a time. Cost: two comparisons, and 24 bytes written for a span that is long enough.
 */
#ifndef PERFLAW_SPANS_H
#define PERFLAW_SPANS_H

#include "layout.h"

enum { WORST = 8, MOST_SPANS = 256, MOST_SPANS_APART = 1024, MOST_SPANS_OPEN = 1 << 15 };

/* A call that has completed within one that is open; depth: of the stack, then place of its caller's among those kept. */
struct Span {
    int32_t node, depth;
    int64_t started, time;
};
/* One of the longest invocations of a function, and what is within it, callers first. */
typedef struct Worst {
    uint64_t sequence;
    int64_t started, time, cpu, events;
    int32_t node;
    uint32_t count;
    Span *spans;
} Worst;
struct Worsts {
    uint32_t count;
    Worst of[WORST]; /* in no order */
};

/* The parts that are seldom needed. */
void spans_more(Tree *tree, Stack *stack, Frame *caller);
int spans_make_room(Tree *tree, Stack *stack);
void spans_keep(Tree *tree, const Stack *stack, const Frame *done);

/* An invocation begins, or goes on. */
static inline void spans_begin(const Stack *stack, Frame *top) { top->first_span = stack->span_count; }

/* The top invocation returns or yields, after `time` since it was last (re)entered: a span of its caller's, and if it is too
 * short, so is all within it. caller: NULL for the root, which has no use for it. */
static inline void spans_end(Tree *tree, Stack *stack, const Frame *top, Frame *caller, int64_t time) {
    if (!caller || time <= caller->least_span || (stack->span_count == stack->span_room && !spans_make_room(tree, stack))) {
        stack->span_count = top->first_span;
        return;
    }
    stack->spans[stack->span_count++] = (Span){top->slot->number, (int32_t)stack->height, top->segment, time};
    if (stack->span_count - caller->first_span > MOST_SPANS_APART) spans_more(tree, stack, caller);
}

/* The top invocation has completed, and what is within it is still there. */
static inline void spans_done(Tree *tree, const Stack *stack, const Frame *top) {
    if (top->x > top->node->sums->worst_bound && top->manner == PLAIN) spans_keep(tree, stack, top);
}

#endif
