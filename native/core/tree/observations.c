#include "observations.h"

#include "descendants.h"
#include "lanes.h"
#include "stacks.h"

/* An invocation that was pushed at or below the observed one's height means that this one is gone. */
void observations_push(Stack *stack, int is_new) {
    Invocation *top = &stack->open[stack->height];
    if (stack->observed >= stack->height) stack->observed = 0;
    if (is_new) top->is_observed = top->code > 0 && top->node->function->is_observed && !stack->observed;
    if (top->is_observed && !stack->observed) stack->observed = stack->height;
}

static void add(Tree *tree, Invocation *observed, const Node *node, uint64_t calls, int64_t time, int64_t off) {
    Descendant *part = descendants_item(&tree->arena, &observed->parts, node->number, node->depth);
    if (!part) return;
    part->calls += calls;
    part->time = plus(part->time, time);
    part->events = plus(part->events, off);
}

/* What the top spends is its own but for what its callees have spent, which was taken from it when they ended. */
void observations_spend(Tree *tree, const Stack *stack, const Invocation *top, const Invocation *caller, int64_t spent) {
    if (stack->observed > stack->height) return;
    Invocation *observed = &stack->open[stack->observed];
    int64_t off = lane_value(top->segment_changes, METRIC_CPU);
    add(tree, observed, top->node, top->uncounted, spent, off);
    if (top != observed) add(tree, observed, caller->node, 0, minus(0, spent), minus(0, off));
}

void observations_call(Tree *tree, const Stack *stack, const Node *node) {
    if (stack->observed <= stack->height) add(tree, &stack->open[stack->observed], node, 1, 0, 0);
}

void observations_keep(Tree *tree, const Stack *stack, Feature feature) {
    if (stack->observed >= stack->height) return; /* it is the observation's own, or there is none any more */
    Invocation *observed = &stack->open[stack->observed];
    if (observed->feature_count >= MAX_OBSERVED_FEATURES) return;
    for (uint32_t at = 0; at < observed->feature_count; at++)
        if (observed->features[at].number == feature.number) return;
    stacks_add_feature(tree, observed, feature);
}
