#include "calltree.h"

#include <errno.h>

#include "core/paths/paths.h"
#include "core/tree/descendants.h"
#include "core/tree/lanes.h"
#include "core/tree/moments.h"
#include "core/tree/nodes.h"
#include "core/tree/observations.h"
#include "core/tree/reservoir.h"
#include "core/tree/spans.h"
#include "core/tree/stacks.h"

static void note_stamp(Tree *tree, int64_t stamp) {
    if (!tree->has_stamps) tree->first_stamp = stamp;
    tree->has_stamps = 1;
    if (stamp > tree->last_stamp) tree->last_stamp = stamp;
}

/* ---- the end of a segment (an invocation returns or is suspended), and of an invocation ---- */

/* The clock of a stack, which stands still while the stack is switched out. */
static inline int64_t stack_clock(const Stack *stack, int64_t stamp) { return minus(stamp, stack->switched_out_ns); }

/* Add the changes of an outermost segment to the function. */
static void add_changes(Tree *tree, Function *function, const Lane *changes) {
    for (; changes; changes = changes->next) {
        FunctionLane *lane = lane_ensure(&tree->arena, &function->lanes, changes->metric, sizeof(FunctionLane));
        int64_t value = ((const Change *)changes)->value;
        if (lane) lane->total += widen(changes->metric == METRIC_CPU ? minus(0, value) : value);
    }
}

/* Add the changes of a segment to the caller, to what it knows of this node, and to the invocation itself. */
static void move_changes(Tree *tree, Invocation *top, Invocation *caller) {
    Arena *arena = &tree->arena;
    if (caller) {
        uint32_t place = descendants_position(arena, &caller->callees, top->slot->number);
        Lane **of_node = place < caller->callees.count ? descendants_changes(arena, &caller->callees, place) : NULL;
        lane_merge(arena, &caller->segment_changes, top->segment_changes);
        if (of_node) lane_merge(arena, of_node, top->segment_changes);
    }
    lane_merge(arena, &top->changes, top->segment_changes);
    lane_clear(arena, &top->segment_changes);
}

/* Add what has passed since the top invocation was last (re)entered to it and to its caller (NULL for the root).
 * Gives that time. This and the next function are inlined, because nearly all time is spent there. */
static inline __attribute__((always_inline)) int64_t close_segment(Tree *tree, Stack *stack, Invocation *top,
                                                                   Invocation *caller, int64_t stamp) {
    int64_t spent = minus(stack_clock(stack, stamp), top->segment_start);
    int64_t events = minus(stack->events, top->segment_start_events);
    const Node *slot = top->slot;
    Function *function = top->node->function;
    const Descendant descendant = {slot->number, slot->depth, top->uncounted, spent, events};
    if (caller) descendants_add(&tree->arena, &caller->callees, &descendant);
    observations_add(tree, stack, top, caller, spent);
    top->uncounted = 0;
    top->time = plus(top->time, spent);
    top->events = plus(top->events, events);
    top->resumes += stack->resumes - top->segment_start_resumes;
    if (!--stack->depth_of[function->number]) {
        function->total_time += widen(spent);
        function->total_events = plus(function->total_events, events);
        function->closed = 1;
        if (top->segment_changes) add_changes(tree, function, top->segment_changes);
    }
    if (top->segment_changes) move_changes(tree, top, caller);
    return spent;
}

/* Add a completed invocation to all sums and samples. stack: the one that it is the top of; NULL if it is set aside. */
static inline __attribute__((always_inline)) void add_completed(Tree *tree, Stack *stack, Invocation *completed,
                                                                Invocation *caller) {
    ExclusiveCost exclusive;
    Function *function = completed->node->function;
    unsigned bucket = log_bucket(completed->time);
    histogram_count(&tree->arena, &completed->node->histogram, bucket);
    if (!moments_repeat(tree, stack, completed, caller, &exclusive))
        exclusive = moments_add(tree, stack, completed, caller);
    if (completed->waited > completed->consumed)
        moments_add_suspension(tree, completed->node, minus(completed->waited, completed->consumed));
    function->self_time += widen(exclusive.time);
    function->self_events = plus(function->self_events, exclusive.events);
    function->recorded = 1;
    if (completed->kind == ASIDE) return;
    reservoir_offer(tree, function, ++tree->calls, completed, bucket / 4);
    if (tree->paths) paths_add(tree, completed);
}

/* ---- events ---- */

/* A generator was closed without an event if the address of its frame is in use again: it has all the cost it will
 * have. */
static __attribute__((noinline)) void close_unseen(Tree *tree, int64_t frame) {
    Invocation *unseen = stacks_take(tree, frame);
    if (!unseen) return;
    unseen->skipped = 0;
    if (unseen->code > 0) add_completed(tree, NULL, unseen, NULL);
    stacks_free(tree, unseen);
}

static inline Node *node_of_call(Tree *tree, const Stack *stack, const Event *event) {
    return nodes_child(tree, stacks_top(stack)->node, event->site, event->code);
}

/* Push an invocation that begins, or began before the recording (code < 0). NULL if the arena is full. */
static inline Invocation *begin(Tree *tree, Stack *stack, const Event *event, int32_t code, Node *node) {
    Invocation *new = stacks_push(tree, stack, (uint32_t)event->code);
    if (!new) return NULL;
    new->frame = event->frame;
    new->started = event->value;
    new->segment_start = stack_clock(stack, event->value);
    new->time = new->waited = new->consumed = new->events = new->resumes = 0;
    new->segment_start_events = stack->events;
    new->segment_start_resumes = stack->resumes;
    new->node = new->slot = node;
    new->code = code;
    new->key = event->key;
    new->uncounted = 1;
    new->kind = PLAIN;
    new->min_span_time = node->min_span_time;
    observations_begin(tree, stack, 1);
    spans_begin(stack, new);
    return new;
}

static void enter(Tree *tree, Stack *stack, const Event *event) {
    if (tree->suspended.used) close_unseen(tree, event->frame);
    Node *node = node_of_call(tree, stack, event);
    if (!node || !begin(tree, stack, event, event->code, node)) return;
    stack->events++; /* after the invocation has read it, because an invocation is an event of its own */
    if (node->site == ELSEWHERE) tree->folded++;
    note_stamp(tree, event->value);
}

/* A call that is only counted. Its caller knows of it as of any other callee, which takes no time. */
static void count(Tree *tree, Stack *stack, const Event *event) {
    Node *node = (uint32_t)event->code - 1 < MAX_CODE - 1 ? node_of_call(tree, stack, event) : NULL;
    if (!node) return;
    Function *function = node->function;
    Invocation *caller = stack->height ? stacks_top(stack) : NULL;
    const Descendant descendant = {node->number, node->depth, 1, 0, 1};
    if (caller && caller->deeper.loan) descendants_copy_loan(&tree->arena, &caller->deeper); /* as for any other call */
    if (caller) descendants_add(&tree->arena, &caller->callees, &descendant);
    observations_count(tree, stack, node);
    moments_count(node);
    if (node->site == ELSEWHERE) tree->folded++;
    stack->events++;
    tree->calls++;
    function->self_events = plus(function->self_events, 1);
    function->recorded = 1;
    uint32_t number = (uint32_t)event->code;
    if (number < stack->depth_capacity && stack->depth_of[number]) return; /* the total of an open invocation has it */
    function->total_events = plus(function->total_events, 1);
    function->closed = 1;
}

/* A function of a library, which is not called yet. */
static void library(Tree *tree, const Event *event) {
    Function *function = (uint32_t)event->code - 1 < MAX_CODE - 1 ? nodes_function(tree, event->code) : NULL;
    if (function) function->is_library = 1;
}

/* A function whose invocations are observations, which is not called yet. */
static void observe(Tree *tree, const Event *event) {
    Function *function = (uint32_t)event->code - 1 < MAX_CODE - 1 ? nodes_function(tree, event->code) : NULL;
    if (function) function->is_observed = tree->is_observing = 1;
}

/* Work that the interpreter does aside begins. It is no event, so that events tell only of the program's own work. */
static void enter_aside(Tree *tree, Stack *stack, const Event *event) {
    Node *node = (uint32_t)event->code - 1 < MAX_CODE - 1 ? node_of_call(tree, stack, event) : NULL;
    if (node && begin(tree, stack, event, event->code, node)) stacks_top(stack)->kind = ASIDE;
}

/* Make the invocation of a frame the top: what is above it has died without an event. 0 if it is not open. */
static int uncover(Tree *tree, Stack *stack, int64_t frame) {
    return stack->height && (stacks_top(stack)->frame == frame || (frame && stacks_bury(tree, stack, frame)));
}

static Invocation *caller_of(const Stack *stack) { return stack->height > 1 ? stacks_top(stack) - 1 : NULL; }

static void leave(Tree *tree, Stack *stack, const Event *event) {
    if (!uncover(tree, stack, event->frame)) return;
    Invocation *top = stacks_top(stack), *caller = caller_of(stack);
    int64_t spent = close_segment(tree, stack, top, caller, event->value);
    if (top->code > 0) {
        top->skipped = event->site > 0 ? (uint32_t)event->site : 0;
        add_completed(tree, stack, top, caller);
        spans_complete(tree, stack, top);
    }
    spans_end(tree, stack, top, caller, spent);
    note_stamp(tree, event->value);
    stack->height--;
    stacks_clear(tree, top);
}

static void yield(Tree *tree, const EventSource *source, const Event *event) {
    Stack *stack = source->current;
    if (!uncover(tree, stack, event->frame)) return;
    Invocation *top = stacks_top(stack), *caller = caller_of(stack);
    spans_end(tree, stack, top, caller, close_segment(tree, stack, top, caller, event->value));
    top->segment_start = event->value;
    top->source = source->number;
    top->overhead_ns = source->overhead_ns;
    top->is_consumed = event->site == 0;
    stacks_suspend(tree, stack);
}

/* How long an invocation was suspended. Each thread's clock leaves out that thread's overhead, so the readings of
 * two threads differ by their overheads as well. */
static int64_t suspended_time(const Invocation *suspended, const EventSource *source, int64_t stamp) {
    int64_t difference = source->number == suspended->source ? 0 : minus(source->overhead_ns, suspended->overhead_ns);
    int64_t passed = plus(minus(stamp, suspended->segment_start), difference);
    return passed > 0 ? passed : 0; /* the overhead is only known as of the beginnings of turns */
}

static void resume(Tree *tree, const EventSource *source, const Event *event) {
    Stack *stack = source->current;
    Invocation *suspended = stacks_take(tree, event->frame), *top;
    Node *slot = node_of_call(tree, stack, event);
    if (!slot) return;
    if (suspended) {
        int64_t passed = suspended_time(suspended, source, event->value);
        suspended->waited = plus(suspended->waited, passed);
        if (suspended->is_consumed) suspended->consumed = plus(suspended->consumed, passed);
        if (!stacks_resume(tree, stack, suspended)) return;
        top = stacks_top(stack);
        top->kind = RESUMED;
        observations_begin(tree, stack, 0);
    } else { /* it began before the recording, so nothing is learnt of the call */
        top = begin(tree, stack, event, -event->code, slot);
    }
    if (!top) return;
    top->slot = slot;
    top->segment_start = stack_clock(stack, event->value);
    top->segment_start_events = stack->events;
    top->segment_start_resumes = stack->resumes++;
    spans_begin(stack, top);
}

static void feature(Tree *tree, Stack *stack, const Event *event) {
    Invocation *top = stacks_top(stack);
    if (!stack->height || top->frame != event->frame) return;
    const Feature feature = {event->code, event->value};
    stacks_add_feature(tree, top, feature);
    observations_read(tree, stack, feature);
}

static void change(Tree *tree, Stack *stack, const Event *event) {
    uint32_t metric = (uint32_t)event->code;
    int is_known = metric == METRIC_CPU || (metric >= METRIC_MORE && metric < tree->lane_count);
    if (is_known && stack->height) lane_add(&tree->arena, &stacks_top(stack)->segment_changes, metric, event->value);
}

/* ---- any event ---- */

static void feed_rare(Tree *tree, EventSource *source, const Event *event) {
    Stack *stack = source->current;
    switch (event->kind) {
        case EVENT_YIELD: yield(tree, source, event); break;
        case EVENT_RESUME: resume(tree, source, event); break;
        case EVENT_FEATURE: feature(tree, stack, event); break;
        case EVENT_ASIDE: enter_aside(tree, stack, event); break;
        case EVENT_COUNT: count(tree, stack, event); break;
        case EVENT_LIBRARY: library(tree, event); break;
        case EVENT_OBSERVE: observe(tree, event); break;
        case EVENT_DEAD: stacks_bury(tree, stack, event->frame); break;
        case EVENT_CHANGE: change(tree, stack, event); break;
        case EVENT_SWITCH: stacks_switch(tree, source, event->frame, event->value); break;
        case EVENT_THREAD:
        case EVENT_END: stacks_end(tree, source); break;
        case EVENT_TURN:
            source->turn = event->frame;
            source->rings = event->code;
            source->overhead_ns = event->value;
            break;
    }
}

/* Numbers of functions are small. What a torn record may have instead would make the arrays by function huge. 0 is
 * no function but the tracer's calibration. */
static int is_plausible(const Event *event) {
    return (uint32_t)event->code - 1 < MAX_CODE - 1 || (uint32_t)event->kind - EVENT_ENTER > EVENT_RESUME - EVENT_ENTER;
}

void calltree_feed(Tree *tree, EventSource *source, const Event *event) {
    int can_take = !tree->arena.full && (source->current || stacks_begin(tree, source));
    if (!can_take || !is_plausible(event)) tree->lost += !can_take || event->code;
    else if (event->kind == EVENT_ENTER) enter(tree, source->current, event);
    else if (event->kind == EVENT_EXIT) leave(tree, source->current, event);
    else feed_rare(tree, source, event);
}

int calltree_begin(Tree *tree, uint64_t seed, uint32_t max_distance, uint64_t memory) {
    *tree = (Tree){.seed = seed, .max_distance = max_distance, .limits = DEFAULT_LIMITS, .lane_count = METRIC_MORE};
    tree->uniform_size = UNIFORM_SIZE;
    tree->stratum_size = STRATUM_SIZE;
    tree->nodes.item_size = sizeof(Node);
    tree->functions.item_size = sizeof(Function *);
    int error = arena_create(&tree->arena, memory);
    if (error) return error;
    Node *root = grid_ensure(&tree->arena, &tree->nodes, ROOT);
    if (!root) return calltree_destroy(tree), ENOMEM;
    root->parent = root->site = root->code = -1;
    return 0;
}

void calltree_destroy(Tree *tree) { arena_destroy(&tree->arena); }

void calltree_end(Tree *tree, EventSource *source) { stacks_end(tree, source); }

void calltree_finish(Tree *tree) { stacks_end_suspended(tree); }
