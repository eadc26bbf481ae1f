#include "stacks.h"

#include "nodes.h"

static uint32_t low(int64_t number) { return (uint32_t)number; }
static uint32_t high(int64_t number) { return (uint32_t)((uint64_t)number >> 32); }
static uint32_t code_of(const Invocation *open) { return (uint32_t)(open->code < 0 ? -open->code : open->code); }

/* ---- invocations ---- */

int stacks_make_room(Tree *tree, Stack *stack, uint32_t code) {
    Arena *arena = &tree->arena;
    if (stack->height + 1 >= stack->capacity) {
        uint64_t old = stack->capacity, new = old ? old * 2 : 16, size = sizeof(Descendant);
        if (!arena_enlarge(arena, (void **)&stack->chain, (old + 1) * size, (new + 1) * size)) return 0;
        uint64_t from = (old + CHAIN_PADDING) * sizeof(uint64_t), to = (new + CHAIN_PADDING) * sizeof(uint64_t);
        if (!arena_enlarge(arena, (void **)&stack->times, from, to)) return 0;
        if (!arena_enlarge(arena, (void **)&stack->open, old * sizeof(Invocation), new * sizeof(Invocation))) return 0;
        stack->capacity = (uint32_t)new;
    }
    if (code >= stack->depth_capacity) {
        uint64_t old = stack->depth_capacity, new = code < 32 ? 64 : (uint64_t)code * 2;
        if (!arena_enlarge(arena, (void **)&stack->depth_of, old * sizeof(int32_t), new * sizeof(int32_t))) return 0;
        stack->depth_capacity = (uint32_t)new;
    }
    return 1;
}

void stacks_add_feature(Tree *tree, Invocation *invocation, Feature feature) {
    uint64_t old = invocation->feature_capacity, new = old ? old * 2 : 4, size = sizeof(Feature);
    if (invocation->feature_count == old) {
        if (!arena_enlarge(&tree->arena, (void **)&invocation->features, old * size, new * size)) return;
        invocation->feature_capacity = (uint32_t)new;
    }
    invocation->features[invocation->feature_count++] = feature;
}

/* The top has died. Its changes are its caller's, as its time is. */
static void drop_top(Tree *tree, Stack *stack) {
    Invocation *dead = stacks_top(stack);
    stack->height--;
    stack->depth_of[code_of(dead)]--;
    dead->node->open++;
    if (stack->height) lane_merge(&tree->arena, &stacks_top(stack)->segment_changes, dead->segment_changes);
    stacks_clear(tree, dead);
}

int stacks_bury(Tree *tree, Stack *stack, int64_t frame) {
    uint32_t place = stack->height;
    while (place && stack->open[place].frame != frame) place--;
    if (!place && frame) return 0;
    while (stack->height > place) drop_top(tree, stack);
    return 1;
}

/* ---- suspended invocations: each has a block, whose arrays change places with those of the stack ---- */

static void swap(Invocation *a, Invocation *b) {
    Invocation between = *a;
    *a = *b;
    *b = between;
}

void stacks_free(Tree *tree, Invocation *suspended) {
    stacks_clear(tree, suspended);
    suspended->next_free = tree->free_invocations;
    tree->free_invocations = suspended;
}

int stacks_has_suspended(const Tree *tree, int64_t frame) {
    return tree->suspended.used && table_get(&tree->suspended, low(frame), high(frame), 0);
}

Invocation *stacks_take(Tree *tree, int64_t frame) {
    if (!tree->suspended.used) return NULL;
    uint32_t number = table_pop(&tree->suspended, low(frame), high(frame), 0);
    return number ? arena_block(&tree->arena, number) : NULL;
}

int stacks_suspend(Tree *tree, Stack *stack) {
    Invocation *block = tree->free_invocations, *top = stacks_top(stack), *before = stacks_take(tree, top->frame);
    if (before) stacks_free(tree, before);
    if (top->deeper.loan) descendants_copy_loan(&tree->arena, &top->deeper);
    if (block) tree->free_invocations = block->next_free;
    else block = arena_alloc(&tree->arena, sizeof(Invocation));
    if (!block) return 0;
    stack->height--;
    swap(block, top);
    uint32_t number = arena_number(&tree->arena, block);
    return table_put(&tree->arena, &tree->suspended, low(block->frame), high(block->frame), 0, number);
}

int stacks_resume(Tree *tree, Stack *stack, Invocation *suspended) {
    Invocation *top = stacks_push(tree, stack, code_of(suspended));
    if (!top) return 0;
    swap(top, suspended);
    stacks_free(tree, suspended);
    return 1;
}

/* ---- stacks ---- */

static Stack *create(Tree *tree) {
    Stack *stack = tree->free_stacks;
    if (stack) {
        tree->free_stacks = stack->next;
        return stack;
    }
    stack = arena_alloc(&tree->arena, sizeof(Stack));
    if (!stack || !stacks_make_room(tree, stack, 0)) return NULL;
    stack->open[0].node = node_at(tree, ROOT);
    return stack;
}

static Stack *begin(Tree *tree, EventSource *source, int64_t serial) {
    Stack *stack = create(tree);
    uint32_t number = stack ? arena_number(&tree->arena, stack) : 0;
    if (!stack || !table_put(&tree->arena, &tree->stacks, source->number, low(serial), high(serial), number)) return NULL;
    stack->serial = serial;
    stack->span_count = 0;
    stack->switched_out_ns = 0;
    stack->previous = NULL;
    stack->next = source->stacks;
    if (stack->next) stack->next->previous = stack;
    return source->stacks = stack;
}

/* Count what is on a stack as open, and keep the stack for the next greenlet or thread. */
static void end(Tree *tree, EventSource *source, Stack *stack) {
    while (stack->height) drop_top(tree, stack);
    if (stack->next) stack->next->previous = stack->previous;
    *(stack->previous ? &stack->previous->next : &source->stacks) = stack->next;
    table_pop(&tree->stacks, source->number, low(stack->serial), high(stack->serial));
    stack->next = tree->free_stacks;
    tree->free_stacks = stack;
}

void stacks_switch(Tree *tree, EventSource *source, int64_t serial, int64_t stamp) {
    Stack *left = source->current;
    if (left->serial == serial) return;
    left->switched_out_at = stamp;
    uint32_t number = table_get(&tree->stacks, source->number, low(serial), high(serial));
    Stack *entered = number ? arena_block(&tree->arena, number) : begin(tree, source, serial);
    if (!entered) return; /* the arena is full, so no event is taken any more */
    if (number) entered->switched_out_ns = plus(entered->switched_out_ns, minus(stamp, entered->switched_out_at));
    source->current = entered;
    if (!left->height) end(tree, source, left);
}

/* ---- threads ---- */

Stack *stacks_begin(Tree *tree, EventSource *source) { return source->current = begin(tree, source, 0); }

void stacks_end(Tree *tree, EventSource *source) {
    while (source->stacks) end(tree, source, source->stacks);
    source->current = NULL;
}

void stacks_end_suspended(Tree *tree) {
    for (uint32_t at = 0; at < tree->suspended.capacity; at++) {
        Slot *slot = &tree->suspended.slots[at];
        Invocation *suspended = slot->value ? arena_block(&tree->arena, slot->value) : NULL;
        if (!suspended) continue;
        suspended->node->open++;
        stacks_free(tree, suspended);
        *slot = (Slot){0};
    }
    tree->suspended.used = 0;
}
