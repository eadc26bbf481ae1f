/* Threads, their stacks (one, and one for each greenlet that has something open), and the frames on them.
 *
 * Ownership: all lie in the arena and are used again. Threads: one at a time. Pointers to frames are good until the next
 * stacks_push. Cost: a push writes 100 bytes; a stack is 64 frames of 200 bytes at first.
 */
#ifndef PERFLAW_STACKS_H
#define PERFLAW_STACKS_H

#include "bag.h"
#include "lanes.h"

/* Stack 0 of a thread that begins; NULL if the arena is full. */
Stack *stacks_begin(Tree *tree, Source *thread);
/* What follows belongs to the thread's stack of this serial number, begun if new. The other one's clock stands still. */
void stacks_switch(Tree *tree, Source *thread, int64_t serial, int64_t stamp);
/* The thread has ended: what stands on its stacks is counted as open. */
void stacks_end(Tree *tree, Source *thread);

static inline Frame *stacks_top(const Stack *stack) { return &stack->frames[stack->height]; }

/* Room for one more frame of a code. 0 if the arena is full. */
int stacks_make_room(Tree *tree, Stack *stack, uint32_t code);
/* A new top, whose bags are empty and whose other fields are the caller's to fill; NULL if the arena is full. */
static inline Frame *stacks_push(Tree *tree, Stack *stack, uint32_t code) {
    if (stacks_top(stack)->deeper.lent) bag_keep(&tree->arena, &stacks_top(stack)->deeper); /* the room is the new one's */
    if ((stack->height + 1 == stack->capacity || code >= stack->codes) && !stacks_make_room(tree, stack, code)) return NULL;
    stack->depth_of[code]++;
    return &stack->frames[++stack->height];
}
/* Empty the frame for the next invocation there. */
static inline void stacks_clear(Tree *tree, Frame *frame) {
    bag_clear(&tree->arena, &frame->kids);
    bag_clear(&tree->arena, &frame->deeper);
    frame->feature_count = 0;
    if (frame->segment_changes) lane_clear(&tree->arena, &frame->segment_changes);
    if (frame->changes) lane_clear(&tree->arena, &frame->changes);
}

/* Close what stands above the invocation of this frame, without a sample: what it cost, its caller did. Frame 0: close
 * all. 0 if not open. */
int stacks_bury(Tree *tree, Stack *stack, int64_t frame);

/* Set the top, whose segment is closed, aside; one of the same identity that was set aside before is forgotten. 0 if
 * the arena is full. */
int stacks_suspend(Tree *tree, Stack *stack);
/* Whether one of this identity is set aside. */
int stacks_suspends(const Tree *tree, int64_t frame);
/* Take back one that was set aside: stacks_resume puts it on top, stacks_forget nowhere. NULL if there is none. */
Frame *stacks_take(Tree *tree, int64_t frame);
int stacks_resume(Tree *tree, Stack *stack, Frame *suspended);
void stacks_forget(Tree *tree, Frame *suspended);

/* Count what is suspended as open. */
void stacks_end_suspended(Tree *tree);

#endif
