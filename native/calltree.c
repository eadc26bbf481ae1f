#include "calltree.h"

#include <errno.h>

#include "bag.h"
#include "lanes.h"
#include "moments.h"
#include "nodes.h"
#include "paths.h"
#include "reservoir.h"
#include "spans.h"
#include "stacks.h"

static void see(Tree *tree, int64_t stamp) {
    if (!tree->seen) tree->first = stamp;
    tree->seen = 1;
    if (stamp > tree->last) tree->last = stamp;
}

/* ---- a segment ends (an invocation returns or yields), and an invocation ---- */

/* Clock of a stack: it stands still while the stack is switched out. */
static inline int64_t stack_clock(const Stack *stack, int64_t stamp) { return since(stamp, stack->away); }

/* Changes of an outermost segment belong to the function as well. */
static void total_changes(Tree *tree, Code *code, const Lane *changes) {
    for (; changes; changes = changes->next) {
        CodeLane *lane = lane_of(&tree->arena, &code->lanes, changes->metric, sizeof(CodeLane));
        int64_t value = ((const Change *)changes)->value;
        if (lane) lane->total += widened(changes->metric == METRIC_CPU ? since(0, value) : value);
    }
}

/* Changes of a segment belong to the caller, to what it knows of this node, and to the invocation itself. */
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

/* Give what passed since the top invocation was last (re)entered to it and to its caller, NULL for the root; that time. */
static inline __attribute__((always_inline)) int64_t close_segment(Tree *tree, Stack *stack, Frame *top, Frame *caller, int64_t stamp) {
    int64_t spent = since(stack_clock(stack, stamp), top->segment), events = since(stack->events, top->events_segment);
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
        if (top->segment_changes) total_changes(tree, code, top->segment_changes);
    }
    if (top->segment_changes) move_changes(tree, top, caller);
    return spent;
}

/* Add a completed invocation to every moment it has a part in. stack: that it is the top of; NULL if it is set aside. */
static inline __attribute__((always_inline)) void record(Tree *tree, Stack *stack, Frame *done, Frame *caller) {
    Own own;
    Code *code = done->node->sums;
    unsigned bucket = log_bucket(done->x);
    moments_count(&tree->arena, &done->node->histogram, bucket);
    if (!moments_repeat(tree, stack, done, caller, &own)) own = moments_add(tree, stack, done, caller);
    if (done->waited) moments_wait(tree, done->node, done->waited);
    code->self_time += widened(own.time);
    code->self_events = plus(code->self_events, own.events);
    code->recorded = 1;
    if (done->manner == ASIDE) return;
    reservoir_offer(tree, code, ++tree->calls, done, bucket / 4);
    if (tree->paths) paths_add(tree, done);
}

/* ---- events ---- */

/* A generator was closed unseen and its frame's address is in use again: it has all the cost it will have. */
static __attribute__((noinline)) void close_unseen(Tree *tree, int64_t frame) {
    Frame *unseen = stacks_take(tree, frame);
    if (!unseen) return;
    if (unseen->code > 0) record(tree, NULL, unseen, NULL);
    stacks_forget(tree, unseen);
}

static inline Node *node_of_call(Tree *tree, const Stack *stack, const Event *event) {
    return nodes_child(tree, stacks_top(stack)->node, event->site, event->code);
}

/* A frame on top for an invocation that begins, or began before the recording (code < 0). NULL if the arena is full. */
static inline Frame *begin(Tree *tree, Stack *stack, const Event *event, int32_t code, Node *node) {
    Frame *new = stacks_push(tree, stack, (uint32_t)event->code);
    if (!new) return NULL;
    new->frame = event->frame;
    new->started = event->value;
    new->segment = stack_clock(stack, event->value);
    new->x = new->waited = new->events = 0;
    new->events_segment = stack->events;
    new->node = new->slot = node;
    new->code = code;
    new->key = event->key;
    new->fresh = 1;
    new->manner = PLAIN;
    new->least_span = node->brief;
    spans_begin(stack, new);
    return new;
}

static void enter(Tree *tree, Stack *stack, const Event *event) {
    if (tree->suspended.used) close_unseen(tree, event->frame);
    Node *node = node_of_call(tree, stack, event);
    if (!node || !begin(tree, stack, event, event->code, node)) return;
    stack->events++; /* after the frame has read it: an invocation is an event of its own */
    if (node->site == ELSEWHERE) tree->folded++;
    see(tree, event->value);
}

/* What the interpreter does aside begins: no event, so that events tell the program's own work alone. */
static void aside(Tree *tree, Stack *stack, const Event *event) {
    Node *node = (uint32_t)event->code - 1 < MAX_CODE - 1 ? node_of_call(tree, stack, event) : NULL;
    if (node && begin(tree, stack, event, event->code, node)) stacks_top(stack)->manner = ASIDE;
}

/* Bring the invocation of this frame to the top; whatever stood above it died without an event. 0 if not open. */
static int uncover(Tree *tree, Stack *stack, int64_t frame) {
    return stack->height && (stacks_top(stack)->frame == frame || (frame && stacks_bury(tree, stack, frame)));
}

static Frame *caller_of(const Stack *stack) { return stack->height > 1 ? stacks_top(stack) - 1 : NULL; }

static void leave(Tree *tree, Stack *stack, const Event *event) {
    if (!uncover(tree, stack, event->frame)) return;
    Frame *top = stacks_top(stack), *caller = caller_of(stack);
    int64_t spent = close_segment(tree, stack, top, caller, event->value);
    if (top->code > 0) {
        record(tree, stack, top, caller);
        spans_done(tree, stack, top);
    }
    spans_end(tree, stack, top, caller, spent);
    see(tree, event->value);
    stack->height--;
    stacks_clear(tree, top);
}

static void yield(Tree *tree, const Source *source, const Event *event) {
    Stack *stack = source->current;
    if (!uncover(tree, stack, event->frame)) return;
    Frame *top = stacks_top(stack), *caller = caller_of(stack);
    spans_end(tree, stack, top, caller, close_segment(tree, stack, top, caller, event->value));
    top->segment = event->value;
    top->source = source->number;
    top->taken = source->taken;
    stacks_suspend(tree, stack);
}

/* Each thread's clock leaves out what was taken from that thread: readings of two need what that was. */
static int64_t waited(const Frame *suspended, const Source *source, int64_t stamp) {
    int64_t apart = source->number == suspended->source ? 0 : since(source->taken, suspended->taken);
    int64_t passed = plus(since(stamp, suspended->segment), apart);
    return passed > 0 ? passed : 0; /* what was taken out is known as of the turns' beginnings */
}

static void resume(Tree *tree, const Source *source, const Event *event) {
    Stack *stack = source->current;
    Frame *suspended = stacks_take(tree, event->frame), *top;
    Node *slot = node_of_call(tree, stack, event);
    if (!slot) return;
    if (suspended) {
        suspended->waited = plus(suspended->waited, waited(suspended, source, event->value));
        if (!stacks_resume(tree, stack, suspended)) return;
        top = stacks_top(stack);
        top->manner = RESUMED;
    } else top = begin(tree, stack, event, -event->code, slot); /* no call to learn from */
    if (!top) return;
    top->slot = slot;
    top->segment = stack_clock(stack, event->value);
    top->events_segment = stack->events;
    spans_begin(stack, top);
}

static void feature(Tree *tree, Stack *stack, const Event *event) {
    Frame *top = stacks_top(stack);
    if (!stack->height || top->frame != event->frame) return;
    uint64_t old = top->feature_capacity, new = old ? old * 2 : 4, size = sizeof(Feature);
    if (top->feature_count == old) {
        if (!arena_enlarge(&tree->arena, (void **)&top->features, old * size, new * size)) return;
        top->feature_capacity = (uint32_t)new;
    }
    top->features[top->feature_count++] = (Feature){event->code, event->value};
}

static void change(Tree *tree, Stack *stack, const Event *event) {
    uint32_t metric = (uint32_t)event->code;
    int told = metric == METRIC_CPU || (metric >= METRIC_MORE && metric < tree->lanes);
    if (told && stack->height) lane_change(&tree->arena, &stacks_top(stack)->segment_changes, metric, event->value);
}

/* ---- the one door ---- */

static void feed_rarely(Tree *tree, Source *source, const Event *event) {
    Stack *stack = source->current;
    switch (event->kind) {
        case EVENT_YIELD: yield(tree, source, event); break;
        case EVENT_RESUME: resume(tree, source, event); break;
        case EVENT_FEATURE: feature(tree, stack, event); break;
        case EVENT_ASIDE: aside(tree, stack, event); break;
        case EVENT_DEAD: stacks_bury(tree, stack, event->frame); break;
        case EVENT_CHANGE: change(tree, stack, event); break;
        case EVENT_SWITCH: stacks_switch(tree, source, event->frame, event->value); break;
        case EVENT_THREAD:
        case EVENT_END: stacks_end(tree, source); break;
        case EVENT_TURN:
            source->turn = event->frame;
            source->taken = event->value;
            break;
    }
}

/* Numbers of functions are small: what a torn record may hold instead would make the grids by code huge. 0 is no
 * function but the tracer's calibration. */
static int plausible(const Event *event) {
    return (uint32_t)event->code - 1 < MAX_CODE - 1 || (uint32_t)event->kind - EVENT_ENTER > EVENT_RESUME - EVENT_ENTER;
}

void calltree_feed(Tree *tree, Source *source, const Event *event) {
    int fine = !tree->arena.full && (source->current || stacks_begin(tree, source));
    if (!fine || !plausible(event)) tree->lost += !fine || event->code;
    else if (event->kind == EVENT_ENTER) enter(tree, source->current, event);
    else if (event->kind == EVENT_EXIT) leave(tree, source->current, event);
    else feed_rarely(tree, source, event);
}

int calltree_begin(Tree *tree, uint64_t seed, uint32_t max_distance, uint64_t memory) {
    *tree = (Tree){.seed = seed, .max_distance = max_distance, .limits = USUAL_LIMITS, .lanes = METRIC_MORE};
    tree->uniform = UNIFORM;
    tree->per_stratum = PER_STRATUM;
    tree->nodes.item = sizeof(Node);
    tree->codes.item = sizeof(Code *);
    int error = arena_create(&tree->arena, memory);
    if (error) return error;
    Node *root = grid_reach(&tree->arena, &tree->nodes, ROOT);
    if (!root) return calltree_forget(tree), ENOMEM;
    root->parent = root->site = root->code = -1;
    return 0;
}

void calltree_forget(Tree *tree) { arena_forget(&tree->arena); }

void calltree_end(Tree *tree, Source *source) { stacks_end(tree, source); }

void calltree_finish(Tree *tree) { stacks_end_suspended(tree); }
