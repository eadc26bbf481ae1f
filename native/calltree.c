#include "calltree.h"

#include <string.h>

#include "bag.h"
#include "moments.h"
#include "nodes.h"
#include "reservoir.h"
#include "table.h"

static Tree *tree_of(const Arena *arena) { return &arena->head->tree; }
static int32_t known(int32_t code) { return code < 0 ? -code : code; }

/* later - earlier; wraps instead of overflowing where a torn record holds nonsense. */
static int64_t since(int64_t later, int64_t earlier) { return (int64_t)((uint64_t)later - (uint64_t)earlier); }

/* ---- the pool and the stacks ---- */

static Offset offset_of(const Arena *arena, const void *block) { return (Offset)((const uint8_t *)block - arena->base); }

/* An invocation from the pool, with the emptied bags of the one before; NULL if the arena is full. */
static Invocation *take(Arena *arena, const Event *event, int32_t code, const Node *node) {
    Tree *tree = tree_of(arena);
    Offset block = tree->free_invocation ? tree->free_invocation : arena_alloc(arena, sizeof(Invocation));
    if (!block) return NULL;
    Invocation *new = arena_at(arena, block);
    tree->free_invocation = new->next_free;
    new->frame = event->frame;
    new->started = new->segment = event->value;
    new->x = new->waited = 0;
    new->code = code;
    new->node = new->slot = (int32_t)node->number;
    new->place = offset_of(arena, node);
    new->key = event->key;
    new->fresh = 1;
    return new;
}

/* Back to the pool, its bags emptied but kept: the next call needs the like. */
static void give_back(Arena *arena, Invocation *old) {
    bag_clear(arena, &old->kids);
    bag_clear(arena, &old->deeper);
    if (old->features) ((Row *)arena_at(arena, old->features))->count = 0;
    old->next_free = tree_of(arena)->free_invocation;
    tree_of(arena)->free_invocation = offset_of(arena, old);
}

/* The invocation `up` levels below the top, NULL for the thread's root. */
static Invocation *from_top(const Arena *arena, const Thread *thread, uint32_t up) {
    const Offset *stack = arena_at(arena, thread->stack);
    return thread->height > up ? arena_at(arena, stack[thread->height - 1 - up]) : NULL;
}

/* How many of a code's invocations are open on the thread. */
static int32_t *depth_of(const Arena *arena, const Thread *thread, int32_t code) {
    return (int32_t *)arena_at(arena, thread->depth_of) + known(code);
}

/* A block twice as large with the same content; readers see the old one or the new one. 0 if the arena is full. */
static int enlarge(Arena *arena, Offset *block, uint64_t size, uint64_t larger) {
    Offset old = *block, new = arena_alloc(arena, larger);
    if (!new) return 0;
    if (old) memcpy(arena_at(arena, new), arena_at(arena, old), size);
    arena_publish();
    *block = new;
    arena_publish();
    arena_free(arena, old, size);
    return 1;
}

static int make_room(Arena *arena, Thread *thread, uint32_t code) {
    if (thread->height == thread->capacity) {
        uint32_t capacity = thread->capacity ? thread->capacity * 2 : 64;
        if (!enlarge(arena, &thread->stack, thread->capacity * sizeof(Offset), capacity * sizeof(Offset))) return 0;
        thread->capacity = capacity;
    }
    if (code >= thread->codes) {
        uint64_t codes = code < 32 ? 64 : (uint64_t)code * 2;
        if (!enlarge(arena, &thread->depth_of, thread->codes * sizeof(int32_t), codes * sizeof(int32_t))) return 0;
        thread->codes = codes;
    }
    return 1;
}

static void push(Arena *arena, Thread *thread, const Invocation *new) {
    uint32_t code = (uint32_t)known(new->code);
    if ((thread->height == thread->capacity || code >= thread->codes) && !make_room(arena, thread, code)) return;
    ((Offset *)arena_at(arena, thread->stack))[thread->height] = offset_of(arena, new);
    ++*depth_of(arena, thread, new->code);
    arena_publish();
    thread->height++;
}

/* Close what stands above the invocation of this frame, without a sample; 0 if the frame is not open. */
static int bury(Arena *arena, Thread *thread, int64_t frame) {
    uint32_t above = 0;
    const Invocation *open;
    while ((open = from_top(arena, thread, above)) && open->frame != frame) above++;
    if (!open) return 0;
    while (above--) {
        Invocation *dead = from_top(arena, thread, 0);
        thread->height--;
        arena_publish();
        ((Node *)arena_at(arena, dead->place))->open++;
        --*depth_of(arena, thread, dead->code);
        give_back(arena, dead);
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

/* Give the time since the top invocation was last (re)entered to it and to its caller. */
static void close_segment(Arena *arena, Thread *thread, Invocation *top, int64_t stamp) {
    int64_t spent = since(stamp, top->segment);
    Invocation *caller = from_top(arena, thread, 1);
    const Node *node = top->slot == top->node ? arena_at(arena, top->place) : node_at(arena, top->slot);
    uint32_t cursor = 0;
    if (caller) bag_add(arena, &caller->kids, &(Touch){top->slot, node->depth, top->fresh, spent}, &cursor);
    top->fresh = 0;
    top->x = (int64_t)((uint64_t)top->x + (uint64_t)spent);
    if (!--*depth_of(arena, thread, top->code)) ((Code *)arena_at(arena, node->sums))->total += (Sum)(__int128)spent;
}

/* Let the caller know of everything in a bag that is within reach of it. The kids of an invocation are one level below
 * it, or above (folded), and deeper ones at least two: so no node is in both, and an empty bag needs no search. */
static void pass_up(Arena *arena, const Bag *below, Invocation *caller, int empty, uint32_t *cursor) {
    int32_t floor = ((Node *)arena_at(arena, caller->place))->depth, reach = (int32_t)tree_of(arena)->max_distance;
    for (uint32_t at = 0; at < bag_count(below); at++) {
        int32_t distance = below->items[at].depth - floor;
        if (distance <= 1 || distance > reach) continue;
        if (empty) bag_append(arena, &caller->deeper, &below->items[at]);
        else bag_add(arena, &caller->deeper, &below->items[at], cursor);
    }
}

/* Add a completed invocation to every moment it has a part in. The root, a NULL caller, needs to know nothing. */
static void record(Arena *arena, Invocation *done, Invocation *caller) {
    Tree *tree = tree_of(arena);
    Node *node = arena_at(arena, done->place);
    const Bag *kids = bag_at(arena, done->kids), *deeper = bag_at(arena, done->deeper);
    tree->busy = node->number + 1;
    arena_publish();
    int64_t local = moments_add(arena, node, done->x, kids, deeper);
    if (done->waited) moments_wait(arena, node, done->waited);
    Code *sums = arena_at(arena, node->sums);
    sums->self += (Sum)(__int128)local;
    reservoir_offer(arena, &sums->reservoir, ++tree->calls, done);
    if (!caller || !bag_count(kids) || !tree->max_distance) return;
    uint32_t cursor = 0;
    int empty = !bag_count(bag_at(arena, caller->deeper));
    pass_up(arena, kids, caller, empty, &cursor);
    pass_up(arena, deeper, caller, empty, &cursor);
}

static void see(Tree *tree, int64_t stamp) {
    if (!tree->seen) tree->first = stamp;
    tree->seen = 1;
    if (stamp > tree->last) tree->last = stamp;
}

/* ---- suspended generators and coroutines ---- */

static Invocation *unpark(Arena *arena, int64_t frame) {
    uint32_t high = (uint32_t)((uint64_t)frame >> 32);
    Offset units = table_pop(arena, &tree_of(arena)->suspended, (uint32_t)frame, high, 0);
    return units ? arena_at(arena, units * 16) : NULL;
}

static void park(Arena *arena, Invocation *suspended) {
    Invocation *before = unpark(arena, suspended->frame);
    if (before) give_back(arena, before);
    uint32_t high = (uint32_t)((uint64_t)suspended->frame >> 32), units = (uint32_t)(offset_of(arena, suspended) / 16);
    table_put(arena, &tree_of(arena)->suspended, (uint32_t)suspended->frame, high, 0, units);
}

/* A generator was closed unseen and its frame's address is in use again: it has all the cost it will have. */
static void close_unseen(Arena *arena, int64_t frame) {
    Invocation *unseen = unpark(arena, frame);
    if (!unseen) return;
    if (unseen->code > 0) record(arena, unseen, NULL);
    tree_of(arena)->busy = 0;
    give_back(arena, unseen);
}

/* ---- events ---- */

static Node *node_of_call(Arena *arena, const Thread *thread, const Event *event) {
    const Invocation *top = from_top(arena, thread, 0);
    return nodes_child(arena, top ? arena_at(arena, top->place) : node_at(arena, ROOT), event->site, event->code);
}

void calltree_enter(Arena *arena, Thread *thread, const Event *event) {
    Tree *tree = tree_of(arena);
    if (tree->suspended.used) close_unseen(arena, event->frame);
    const Node *node = node_of_call(arena, thread, event);
    Invocation *new = node ? take(arena, event, event->code, node) : NULL;
    if (new) push(arena, thread, new);
    see(tree, event->value);
}

void calltree_exit(Arena *arena, Thread *thread, int64_t stamp, int64_t frame) {
    Tree *tree = tree_of(arena);
    Invocation *top = uncover(arena, thread, frame);
    if (!top) return;
    close_segment(arena, thread, top, stamp);
    if (top->code > 0) record(arena, top, from_top(arena, thread, 1));
    see(tree, stamp);
    arena_publish();
    thread->height--; /* after the record: a kill in between leaves it open as well, and busy says so */
    arena_publish();
    tree->busy = 0;
    give_back(arena, top);
}

void calltree_yield(Arena *arena, Thread *thread, int64_t stamp, int64_t frame) {
    Invocation *top = uncover(arena, thread, frame);
    if (!top) return;
    close_segment(arena, thread, top, stamp);
    top->segment = stamp;
    thread->height--;
    park(arena, top);
}

void calltree_resume(Arena *arena, Thread *thread, const Event *event) {
    Invocation *resumed = unpark(arena, event->frame);
    const Node *slot = node_of_call(arena, thread, event);
    if (!slot) return;
    if (resumed) resumed->waited = since(event->value, since(resumed->segment, resumed->waited));
    else resumed = take(arena, event, -event->code, slot); /* begun before the recording: no call to learn from */
    if (!resumed) return;
    resumed->slot = (int32_t)slot->number;
    resumed->segment = event->value;
    push(arena, thread, resumed);
}

void calltree_feature(Arena *arena, Thread *thread, const Event *event) {
    Invocation *top = from_top(arena, thread, 0);
    if (top && top->frame == event->frame)
        row_push(arena, &top->features, &(Feature){event->code, event->value}, sizeof(Feature));
}

void calltree_dead(Arena *arena, Thread *thread, int64_t frame) { bury(arena, thread, frame); }
