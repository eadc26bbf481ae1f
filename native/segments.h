/* What adds to the tree: the end of a segment (an invocation returns or yields), and of an invocation.
 * Ownership: the arena's. Threads: one at a time. Cost: nearly all that there is, see alike.h and reservoir.h; so it is inlined. */
#ifndef PERFLAW_SEGMENTS_H
#define PERFLAW_SEGMENTS_H

#include "alike.h"
#include "bag.h"
#include "lanes.h"
#include "paths.h"
#include "reservoir.h"

/* Clock of a stack: it stands still while the stack is switched out. */
static inline int64_t segments_clock(const Stack *stack, int64_t stamp) { return since(stamp, stack->away); }

/* For segments_close: changes of an outermost segment belong to the function as well. */
void segments_total(Tree *tree, Code *code, const Lane *changes);
/* And to the caller, to what it knows of this node, and to the invocation itself. */
void segments_move(Tree *tree, Frame *top, Frame *caller);

/* Give what passed since the top invocation was last (re)entered to it and to its caller, NULL for the root; that time. */
static inline __attribute__((always_inline)) int64_t segments_close(Tree *tree, Stack *stack, Frame *top, Frame *caller, int64_t stamp) {
    int64_t spent = since(segments_clock(stack, stamp), top->segment), events = since(stack->events, top->events_segment);
    const Node *slot = top->slot;
    Code *code = top->node->sums;
    if (caller) bag_add(&tree->arena, &caller->kids, &(Touch){slot->number, slot->depth, top->fresh, spent, events});
    top->fresh = 0;
    top->x = plus(top->x, spent);
    top->events = plus(top->events, events);
    if (!--stack->depth_of[code->number]) {
        code->total_time += widened(spent);
        code->total_events = plus(code->total_events, events);
        code->closed = 1;
        if (top->segment_changes) segments_total(tree, code, top->segment_changes);
    }
    if (top->segment_changes) segments_move(tree, top, caller);
    return spent;
}

/* Add a completed invocation to every moment it has a part in. stack: that it is the top of; NULL if it is set aside. */
static inline __attribute__((always_inline)) void segments_record(Tree *tree, Stack *stack, Frame *done, Frame *caller) {
    Own own;
    Code *code = done->node->sums;
    unsigned bucket = log_bucket(done->x);
    moments_count(&tree->arena, &done->node->histogram, bucket);
    if (!alike_add(tree, stack, done, caller, &own)) own = moments_add(tree, stack, done, caller);
    if (done->waited) moments_wait(tree, done->node, done->waited);
    code->self_time += widened(own.time);
    code->self_events = plus(code->self_events, own.events);
    code->recorded = 1;
    if (done->manner == ASIDE) return;
    reservoir_offer(tree, code, ++tree->calls, done, bucket / 4);
    if (tree->paths) paths_add(tree, done);
}

#endif
