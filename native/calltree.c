#include "calltree.h"

#include "bag.h"
#include "moments.h"
#include "nodes.h"
#include "reservoir.h"
#include "table.h"

static Tree *tree_of(const Arena *arena) { return &arena->head->tree; }
static int32_t known(int32_t code) { return code < 0 ? -code : code; }

/* later - earlier; wraps instead of overflowing where a torn record holds nonsense. */
static int64_t since(int64_t later, int64_t earlier) { return (int64_t)((uint64_t)later - (uint64_t)earlier); }

static Invocation *invocation_at(const Arena *arena, uint32_t number) {
    return grid_at(arena, &tree_of(arena)->invocations, number);
}

/* ---- the pool and the stacks ---- */

/* An invocation from the pool; 0 if the arena is full (number 0 is never given out). */
static uint32_t take(Arena *arena, const Event *event, int32_t code, int32_t node) {
    Tree *tree = tree_of(arena);
    uint32_t number = tree->free_invocation;
    if (!number && !grid_reach(arena, &tree->invocations, number = tree->invocations.count)) return 0;
    Invocation *new = invocation_at(arena, number);
    tree->free_invocation = new->next_free;
    *new = (Invocation){
        .frame = event->frame, .started = event->value, .segment = event->value, .code = code, .node = node,
        .slot = node, .key = event->key, .fresh = 1, .kids = new->kids, .deeper = new->deeper, .features = new->features,
    };
    return number;
}

/* Back to the pool, its bags emptied but kept: the next call needs the like. */
static void give_back(Arena *arena, uint32_t number) {
    Invocation *old = invocation_at(arena, number);
    bag_clear(arena, &old->kids);
    bag_clear(arena, &old->deeper);
    if (old->features) ((Row *)arena_at(arena, old->features))->count = 0;
    old->next_free = tree_of(arena)->free_invocation;
    tree_of(arena)->free_invocation = number;
}

static uint32_t *level(const Arena *arena, const Thread *thread, uint32_t at) {
    return grid_at(arena, &thread->stack, at);
}

/* The invocation `up` levels below the top, NULL for the thread's root. */
static Invocation *from_top(const Arena *arena, const Thread *thread, uint32_t up) {
    return thread->height > up ? invocation_at(arena, *level(arena, thread, thread->height - 1 - up)) : NULL;
}

static void push(Arena *arena, Thread *thread, uint32_t number) {
    Invocation *new = invocation_at(arena, number);
    uint32_t *place = grid_reach(arena, &thread->stack, thread->height);
    int32_t *depth = grid_reach(arena, &thread->depth_of, (uint32_t)known(new->code));
    if (!place || !depth) return;
    *place = number;
    ++*depth;
    arena_publish();
    thread->height++;
}

/* Close what stands above the invocation of this frame, without a sample; 0 if the frame is not open. */
static int bury(Arena *arena, Thread *thread, int64_t frame) {
    uint32_t found = thread->height;
    while (found && invocation_at(arena, *level(arena, thread, found - 1))->frame != frame) found--;
    if (!found) return 0;
    while (thread->height > found) {
        uint32_t number = *level(arena, thread, thread->height - 1);
        Invocation *dead = invocation_at(arena, number);
        thread->height--;
        arena_publish();
        node_at(arena, dead->node)->open++;
        --*(int32_t *)grid_at(arena, &thread->depth_of, (uint32_t)known(dead->code));
        give_back(arena, number);
    }
    return 1;
}

/* Bring the invocation of this frame to the top; whatever stood above it died without an event. */
static Invocation *uncover(Arena *arena, Thread *thread, int64_t frame) {
    Invocation *top = from_top(arena, thread, 0);
    if (!top) return NULL;
    return top->frame == frame || bury(arena, thread, frame) ? from_top(arena, thread, 0) : NULL;
}

/* ---- what a completed call adds ---- */

static Code *code_at(Arena *arena, int32_t code) { return grid_reach(arena, &tree_of(arena)->codes, (uint32_t)code); }

/* Give the time since the top invocation was last (re)entered to it and to its caller. */
static void close_segment(Arena *arena, Thread *thread, Invocation *top, int64_t stamp) {
    int64_t spent = since(stamp, top->segment);
    Invocation *caller = from_top(arena, thread, 1);
    uint32_t cursor = 0;
    Touch touch = {top->slot, node_at(arena, top->slot)->depth, top->fresh, spent};
    if (caller) bag_add(arena, &caller->kids, &touch, &cursor);
    top->fresh = 0;
    top->x = (int64_t)((uint64_t)top->x + (uint64_t)spent);
    int32_t code = known(top->code), *depth = grid_at(arena, &thread->depth_of, (uint32_t)code);
    Code *sums = --*depth ? NULL : code_at(arena, code);
    if (sums) sums->total += (Sum)(__int128)spent;
}

/* Let the caller know of everything in a bag that is within reach of it. */
static void pass_up(Arena *arena, const Bag *below, Invocation *caller, uint32_t *cursor) {
    int32_t floor = node_at(arena, caller->node)->depth, reach = (int32_t)tree_of(arena)->max_distance;
    for (uint32_t at = 0; at < bag_count(below); at++) {
        int32_t distance = below->items[at].depth - floor;
        if (distance > 1 && distance <= reach) bag_add(arena, &caller->deeper, &below->items[at], cursor);
    }
}

/* Add a completed invocation to every moment it has a part in. The root, a NULL caller, needs to know nothing. */
static void record(Arena *arena, Invocation *done, Invocation *caller) {
    Tree *tree = tree_of(arena);
    const Bag *kids = bag_at(arena, done->kids), *deeper = bag_at(arena, done->deeper);
    tree->busy = (uint32_t)done->node + 1;
    arena_publish();
    int64_t local = moments_add(arena, (uint32_t)done->node, done->x, kids, deeper);
    if (done->waited) moments_wait(arena, node_at(arena, done->node), done->waited);
    Code *sums = code_at(arena, done->code);
    tree->calls++;
    if (sums) {
        sums->self += (Sum)(__int128)local;
        reservoir_offer(arena, &sums->reservoir, tree->calls, done);
    }
    uint32_t cursor = 0;
    if (!caller || !bag_count(kids)) return;
    pass_up(arena, kids, caller, &cursor);
    pass_up(arena, deeper, caller, &cursor);
}

static void see(Tree *tree, int64_t stamp) {
    if (!tree->seen) tree->first = stamp;
    tree->seen = 1;
    if (stamp > tree->last) tree->last = stamp;
}

/* ---- suspended generators and coroutines ---- */

static uint32_t unpark(Arena *arena, int64_t frame) {
    return table_pop(arena, &tree_of(arena)->suspended, (uint32_t)frame, (uint32_t)((uint64_t)frame >> 32), 0);
}

static void park(Arena *arena, int64_t frame, uint32_t number) {
    uint32_t before = unpark(arena, frame);
    if (before) give_back(arena, before);
    table_put(arena, &tree_of(arena)->suspended, (uint32_t)frame, (uint32_t)((uint64_t)frame >> 32), 0, number);
}

/* A generator was closed unseen and its frame's address is in use again: it has all the cost it will have. */
static void close_unseen(Arena *arena, int64_t frame) {
    uint32_t number = unpark(arena, frame);
    if (!number) return;
    if (invocation_at(arena, number)->code > 0) record(arena, invocation_at(arena, number), NULL);
    tree_of(arena)->busy = 0;
    give_back(arena, number);
}

/* ---- events ---- */

static int32_t node_of_call(Arena *arena, const Thread *thread, const Event *event) {
    const Invocation *top = from_top(arena, thread, 0);
    return nodes_child(arena, top ? top->node : ROOT, event->site, event->code);
}

void calltree_enter(Arena *arena, Thread *thread, const Event *event) {
    Tree *tree = tree_of(arena);
    if (tree->suspended.used) close_unseen(arena, event->frame);
    int32_t node = node_of_call(arena, thread, event);
    uint32_t number = node ? take(arena, event, event->code, node) : 0;
    if (number) push(arena, thread, number);
    see(tree, event->value);
}

void calltree_exit(Arena *arena, Thread *thread, int64_t stamp, int64_t frame) {
    Tree *tree = tree_of(arena);
    Invocation *top = uncover(arena, thread, frame);
    if (!top) return;
    uint32_t number = *level(arena, thread, thread->height - 1);
    close_segment(arena, thread, top, stamp);
    if (top->code > 0) record(arena, top, from_top(arena, thread, 1));
    see(tree, stamp);
    arena_publish();
    thread->height--; /* after the record: a kill in between leaves it open as well, and busy says so */
    arena_publish();
    tree->busy = 0;
    give_back(arena, number);
}

void calltree_yield(Arena *arena, Thread *thread, int64_t stamp, int64_t frame) {
    Invocation *top = uncover(arena, thread, frame);
    if (!top) return;
    uint32_t number = *level(arena, thread, thread->height - 1);
    close_segment(arena, thread, top, stamp);
    top->segment = stamp;
    thread->height--;
    park(arena, frame, number);
}

void calltree_resume(Arena *arena, Thread *thread, const Event *event) {
    uint32_t number = unpark(arena, event->frame);
    int32_t slot = node_of_call(arena, thread, event);
    if (number) {
        Invocation *known = invocation_at(arena, number);
        known->waited = since(event->value, since(known->segment, known->waited));
    } else { /* it began before the recording did: its cost counts for its caller, but it is not a call to learn from */
        number = take(arena, event, -event->code, slot);
        if (!number) return;
    }
    invocation_at(arena, number)->slot = slot;
    invocation_at(arena, number)->segment = event->value;
    push(arena, thread, number);
}

void calltree_feature(Arena *arena, Thread *thread, const Event *event) {
    Invocation *top = from_top(arena, thread, 0);
    if (top && top->frame == event->frame)
        row_push(arena, &top->features, &(Feature){event->code, event->value}, sizeof(Feature));
}

void calltree_dead(Arena *arena, Thread *thread, int64_t frame) { bury(arena, thread, frame); }
