#include "stacks.h"

#include "nodes.h"
#include "table.h"

static uint32_t low(int64_t number) { return (uint32_t)number; }
static uint32_t high(int64_t number) { return (uint32_t)((uint64_t)number >> 32); }
static uint32_t code_of(const Frame *frame) { return (uint32_t)(frame->code < 0 ? -frame->code : frame->code); }

/* ---- frames ---- */

int stacks_make_room(Tree *tree, Stack *stack, uint32_t code) {
    Arena *arena = &tree->arena;
    if (stack->height + 1 >= stack->capacity) {
        uint64_t old = stack->capacity, new = old ? old * 2 : 16;
        if (!arena_enlarge(arena, (void **)&stack->chain, (old + 1) * sizeof(Touch), (new + 1) * sizeof(Touch))) return 0;
        uint64_t from = (old + CHAIN_MORE) * sizeof(uint64_t), to = (new + CHAIN_MORE) * sizeof(uint64_t);
        if (!arena_enlarge(arena, (void **)&stack->times, from, to)) return 0;
        if (!arena_enlarge(arena, (void **)&stack->frames, old * sizeof(Frame), new * sizeof(Frame))) return 0;
        stack->capacity = (uint32_t)new;
    }
    if (code >= stack->codes) {
        uint64_t old = stack->codes, new = code < 32 ? 64 : (uint64_t)code * 2;
        if (!arena_enlarge(arena, (void **)&stack->depth_of, old * sizeof(int32_t), new * sizeof(int32_t))) return 0;
        stack->codes = (uint32_t)new;
    }
    return 1;
}

/* The top is no more. Its changes are its caller's, as its time is. */
static void drop_dead(Tree *tree, Stack *stack) {
    Frame *dead = stacks_top(stack);
    stack->height--;
    stack->depth_of[code_of(dead)]--;
    dead->node->open++;
    if (stack->height) lane_merge(&tree->arena, &stacks_top(stack)->segment_changes, dead->segment_changes);
    stacks_clear(tree, dead);
}

int stacks_bury(Tree *tree, Stack *stack, int64_t frame) {
    uint32_t place = stack->height;
    while (place && stack->frames[place].frame != frame) place--;
    if (!place && frame) return 0;
    while (stack->height > place) drop_dead(tree, stack);
    return 1;
}

/* ---- suspended frames: a block each, whose bags change places with those of the stack ---- */

static void swap(Frame *a, Frame *b) {
    Frame between = *a;
    *a = *b;
    *b = between;
}

void stacks_forget(Tree *tree, Frame *suspended) {
    stacks_clear(tree, suspended);
    suspended->next_free = tree->free_frames;
    tree->free_frames = suspended;
}

int stacks_suspends(const Tree *tree, int64_t frame) {
    return tree->suspended.used && table_get(&tree->suspended, low(frame), high(frame), 0);
}

Frame *stacks_take(Tree *tree, int64_t frame) {
    if (!tree->suspended.used) return NULL;
    uint32_t number = table_pop(&tree->suspended, low(frame), high(frame), 0);
    return number ? arena_block(&tree->arena, number) : NULL;
}

int stacks_suspend(Tree *tree, Stack *stack) {
    Frame *block = tree->free_frames, *top = stacks_top(stack), *before = stacks_take(tree, top->frame);
    if (before) stacks_forget(tree, before);
    if (top->deeper.lent) bag_keep(&tree->arena, &top->deeper);
    if (block) tree->free_frames = block->next_free;
    else block = arena_alloc(&tree->arena, sizeof(Frame));
    if (!block) return 0;
    stack->height--;
    swap(block, top);
    uint32_t number = arena_number(&tree->arena, block);
    return table_put(&tree->arena, &tree->suspended, low(block->frame), high(block->frame), 0, number);
}

int stacks_resume(Tree *tree, Stack *stack, Frame *suspended) {
    Frame *top = stacks_push(tree, stack, code_of(suspended));
    if (!top) return 0;
    swap(top, suspended);
    stacks_forget(tree, suspended);
    return 1;
}

/* ---- stacks ---- */

static Stack *new_stack(Tree *tree) {
    Stack *stack = tree->free_stacks;
    if (stack) {
        tree->free_stacks = stack->after;
        return stack;
    }
    stack = arena_alloc(&tree->arena, sizeof(Stack));
    if (!stack || !stacks_make_room(tree, stack, 0)) return NULL;
    stack->frames[0].node = node_at(tree, ROOT);
    return stack;
}

static Stack *begin(Tree *tree, Source *thread, int64_t serial) {
    Stack *stack = new_stack(tree);
    uint32_t number = stack ? arena_number(&tree->arena, stack) : 0;
    if (!stack || !table_put(&tree->arena, &tree->stacks, thread->number, low(serial), high(serial), number)) return NULL;
    stack->serial = serial;
    stack->span_count = 0;
    stack->away = 0;
    stack->before = NULL;
    stack->after = thread->stacks;
    if (stack->after) stack->after->before = stack;
    return thread->stacks = stack;
}

/* Count what stands on a stack as open, and keep the stack for the next greenlet or thread. */
static void end(Tree *tree, Source *thread, Stack *stack) {
    while (stack->height) drop_dead(tree, stack);
    if (stack->after) stack->after->before = stack->before;
    *(stack->before ? &stack->before->after : &thread->stacks) = stack->after;
    table_pop(&tree->stacks, thread->number, low(stack->serial), high(stack->serial));
    stack->after = tree->free_stacks;
    tree->free_stacks = stack;
}

void stacks_switch(Tree *tree, Source *thread, int64_t serial, int64_t stamp) {
    Stack *left = thread->current;
    if (left->serial == serial) return;
    left->left = stamp;
    uint32_t number = table_get(&tree->stacks, thread->number, low(serial), high(serial));
    Stack *entered = number ? arena_block(&tree->arena, number) : begin(tree, thread, serial);
    if (!entered) return; /* the arena is full: no event comes any more */
    if (number) entered->away = plus(entered->away, since(stamp, entered->left));
    thread->current = entered;
    if (!left->height) end(tree, thread, left);
}

/* ---- threads ---- */

Stack *stacks_begin(Tree *tree, Source *thread) { return thread->current = begin(tree, thread, 0); }

void stacks_end(Tree *tree, Source *thread) {
    while (thread->stacks) end(tree, thread, thread->stacks);
    thread->current = NULL;
}

void stacks_end_suspended(Tree *tree) {
    for (uint32_t at = 0; at < tree->suspended.capacity; at++) {
        Slot *slot = &tree->suspended.slots[at];
        Frame *suspended = slot->value ? arena_block(&tree->arena, slot->value) : NULL;
        if (!suspended) continue;
        suspended->node->open++;
        stacks_forget(tree, suspended);
        *slot = (Slot){0};
    }
    tree->suspended.used = 0;
}
