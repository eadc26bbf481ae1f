#include "segments.h"

#include "bag.h"
#include "moments.h"
#include "paths.h"
#include "reservoir.h"

static void add_total_changes(Tree *tree, Code *code, const Lane *changes) {
    for (; changes; changes = changes->next) {
        CodeLane *lane = lane_of(&tree->arena, &code->lanes, changes->metric, sizeof(CodeLane));
        int64_t value = ((const Change *)changes)->value;
        if (lane) lane->total += widened(changes->metric == METRIC_CPU ? since(0, value) : value);
    }
}

/* Hand the changes of the segment on: to the caller, to what it knows of this node, and to the invocation itself. */
static void move_changes(Tree *tree, Frame *top, Frame *caller) {
    Arena *arena = &tree->arena;
    if (caller) {
        uint32_t place = bag_seek(arena, &caller->kids, top->slot->number);
        Lane **known = place < caller->kids.count ? bag_changes(arena, &caller->kids, place) : NULL;
        lane_merge(arena, &caller->segment_changes, top->segment_changes);
        if (known) lane_merge(arena, known, top->segment_changes);
    }
    lane_merge(arena, &top->changes, top->segment_changes);
    lane_clear(arena, &top->segment_changes);
}

int64_t segments_close(Tree *tree, Stack *stack, Frame *top, Frame *caller, int64_t stamp) {
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
        if (top->segment_changes) add_total_changes(tree, code, top->segment_changes);
    }
    if (top->segment_changes) move_changes(tree, top, caller);
    return spent;
}

void segments_record(Tree *tree, Stack *stack, Frame *done, Frame *caller) {
    Own own = moments_add(tree, stack, done, caller);
    Code *code = done->node->sums;
    if (done->waited) moments_wait(tree, done->node, done->waited);
    code->self_time += widened(own.time);
    code->self_events = plus(code->self_events, own.events);
    code->recorded = 1;
    if (done->manner != ASIDE) reservoir_offer(tree, code, ++tree->calls, done);
    if (tree->paths && done->manner != ASIDE) paths_add(tree, done);
}
