/* The stacks of threads (one each, and one for each greenlet that has something open), and the invocations on them.
 *
 * Ownership: all lie in the arena and are used again. Pointers to invocations are valid until the next stacks_push.
 * Threads: one at a time. Cost: a push writes 100 bytes; a stack begins with 16 invocations of 288 bytes.
 */
#ifndef PERFLAW_STACKS_H
#define PERFLAW_STACKS_H

#include "descendants.h"
#include "lanes.h"

/* Begin stack 0 of a thread; NULL if the arena is full. */
Stack *stacks_begin(Tree *tree, EventSource *source);
/* What follows belongs to the thread's stack of this serial number, which begins if it is new. The clock of the
 * other one stands still. */
void stacks_switch(Tree *tree, EventSource *source, int64_t serial, int64_t stamp);
/* The thread has ended: what is on its stacks is counted as open. */
void stacks_end(Tree *tree, EventSource *source);

static inline Invocation *stacks_top(const Stack *stack) { return &stack->open[stack->height]; }

/* Make room for one more invocation of a function. 0 if the arena is full. */
int stacks_make_room(Tree *tree, Stack *stack, uint32_t code);
/* A new top, whose descendants are empty and whose other fields the caller has to fill; NULL if the arena is full. */
static inline Invocation *stacks_push(Tree *tree, Stack *stack, uint32_t code) {
    /* the new top needs its room */
    if (stacks_top(stack)->deeper.loan) descendants_copy_loan(&tree->arena, &stacks_top(stack)->deeper);
    if ((stack->height + 1 == stack->capacity || code >= stack->depth_capacity) && !stacks_make_room(tree, stack, code))
        return NULL;
    stack->depth_of[code]++;
    return &stack->open[++stack->height];
}
/* Empty an invocation for the next one at its height. */
static inline void stacks_clear(Tree *tree, Invocation *invocation) {
    descendants_clear(&tree->arena, &invocation->callees);
    descendants_clear(&tree->arena, &invocation->deeper);
    if (tree->is_observing) descendants_clear(&tree->arena, &invocation->parts);
    invocation->feature_count = 0;
    if (invocation->segment_changes) lane_clear(&tree->arena, &invocation->segment_changes);
    if (invocation->changes) lane_clear(&tree->arena, &invocation->changes);
}

/* Add a feature that was read of an invocation. */
void stacks_add_feature(Tree *tree, Invocation *invocation, Feature feature);

/* Close what is above the invocation of a frame, without samples; what it cost is its caller's. Frame 0: close
 * everything. 0 if the frame is not open. */
int stacks_bury(Tree *tree, Stack *stack, int64_t frame);

/* Set the top aside, whose segment is closed. One with the same frame that was set aside before is freed. 0 if the
 * arena is full. */
int stacks_suspend(Tree *tree, Stack *stack);
/* Whether an invocation of this frame is set aside. */
int stacks_has_suspended(const Tree *tree, int64_t frame);
/* Take back the invocation of a frame that was set aside, to resume it (stacks_resume) or to free it (stacks_free).
 * NULL if there is none. */
Invocation *stacks_take(Tree *tree, int64_t frame);
int stacks_resume(Tree *tree, Stack *stack, Invocation *suspended);
void stacks_free(Tree *tree, Invocation *suspended);

/* Count what is set aside as open. */
void stacks_end_suspended(Tree *tree);

#endif
