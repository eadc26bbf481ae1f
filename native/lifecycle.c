/* Beginning and finishing a tree, its threads, and the one door for events of any kind. */
#include <errno.h>

#include "calltree.h"
#include "nodes.h"

int calltree_begin(Arena *arena, uint64_t seed, uint32_t max_distance) {
    Tree *tree = &arena->head->tree;
    tree->seed = seed;
    tree->max_distance = max_distance;
    tree->nodes.item = sizeof(Node);
    tree->codes.item = sizeof(Code);
    tree->threads.item = sizeof(Thread);
    Node *root = grid_reach(arena, &tree->nodes, ROOT);
    if (!root) return ENOSPC;
    *root = (Node){.parent = -1, .site = -1, .code = -1};
    return 0;
}

Thread *calltree_thread(Arena *arena, int64_t number) {
    Grid *threads = &arena->head->tree.threads;
    for (uint32_t at = 0; at < threads->count; at++) {
        Thread *thread = grid_at(arena, threads, at);
        if (thread->number == number) return thread;
    }
    Thread *thread = grid_next(arena, threads);
    if (!thread) return NULL;
    *thread = (Thread){.number = number};
    grid_publish(threads);
    return thread;
}

/* A number of a function: what a torn record may hold instead would make the grids by code huge. */
static int plausible(const Event *event) { return event->code > 0 && event->code < MAX_CODE; }

void calltree_feed(Arena *arena, Thread *thread, const Event *event) {
    int named = event->kind == EVENT_ENTER || event->kind == EVENT_RESUME;
    if (arena->head->full || !thread || (named && !plausible(event))) {
        arena->head->tree.lost++;
        return;
    }
    switch (event->kind) {
        case EVENT_ENTER: calltree_enter(arena, thread, event); break;
        case EVENT_EXIT: calltree_exit(arena, thread, event->value, event->frame); break;
        case EVENT_YIELD: calltree_yield(arena, thread, event->value, event->frame); break;
        case EVENT_RESUME: calltree_resume(arena, thread, event); break;
        case EVENT_FEATURE: calltree_feature(arena, thread, event); break;
        case EVENT_DEAD: calltree_dead(arena, thread, event->frame); break;
    }
}

static void count_open(Arena *arena, Offset invocation) {
    const Invocation *open = arena_at(arena, invocation);
    node_at(arena, open->node)->open++;
}

void calltree_finish(Arena *arena) {
    Tree *tree = &arena->head->tree;
    for (uint32_t at = 0; at < tree->threads.count; at++) {
        Thread *thread = grid_at(arena, &tree->threads, at);
        for (; thread->height; thread->height--)
            count_open(arena, ((Offset *)arena_at(arena, thread->stack))[thread->height - 1]);
    }
    Slot *suspended = arena_at(arena, tree->suspended.slots);
    for (uint32_t at = 0; at < tree->suspended.capacity; at++) {
        if (suspended[at].value) count_open(arena, (Offset)suspended[at].value * 16);
        suspended[at].value = 0;
    }
    tree->suspended.used = 0;
}
