#include "core/tree/spans.h"

#include "core/library/calltree.h"
#include "core/tree/nodes.h"
#include "runner.h"

static void enter(Tree *tree, EventSource *source, int64_t now, int32_t code) {
    calltree_feed(tree, source, &(Event){now, code, code, 0, -1, EVENT_ENTER});
}

static void leave(Tree *tree, EventSource *source, int64_t now, int32_t code) {
    calltree_feed(tree, source, &(Event){now, code, code, -1, -1, EVENT_EXIT});
}

/* Function 1 calls 2, which calls 3: so often, 2 for at + 1 ns longer each time. */
static int64_t calls(Tree *tree, EventSource *source, int64_t now, int count) {
    enter(tree, source, now, 1);
    for (int at = 0; at < count; at++) {
        enter(tree, source, now, 2);
        enter(tree, source, now, 3);
        leave(tree, source, now += at + 1, 3);
        leave(tree, source, now += 1, 2);
    }
    leave(tree, source, now, 1);
    return now;
}

static void callers_stand_before_callees(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    calls(tree, &source, 100, 2);
    const WorstInvocation *one = &nodes_function(tree, 1)->worst->items[0];
    CHECK(tally, one->count == 4 && one->time == 5 && one->events == 5);
    CHECK(tally, one->spans[0].depth == -1 && one->spans[1].depth == 0 && one->spans[2].depth == -1 &&
          one->spans[3].depth == 2);
    CHECK(tally, one->spans[2].started == 2 && one->spans[3].time == 2 && one->spans[2].time == 3);
    done(tree);
}

/* Spans that grow from call to call are the most that there is to do: the last 128 calls stay, each with its callee. */
static void the_longest_stay_and_what_a_stack_remembers_is_bounded(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    EventSource source = {0};
    calls(tree, &source, 0, 100000);
    const WorstInvocation *one = &nodes_function(tree, 1)->worst->items[0];
    int right = one->count == MAX_SPANS;
    for (uint32_t at = 0; at < one->count; at++) right &= one->spans[at].time >= 100000 - MAX_SPANS / 2;
    CHECK(tally, right);
    CHECK(tally, source.current->span_capacity <= 4 * MAX_SPANS_PER_CALLER);
    done(tree);
}

static void memory_is_bounded(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 26);
    EventSource source = {0};
    int64_t now = 0;
    for (int at = 0; at < 3000; at++) now = calls(tree, &source, now, 3 + at % 300);
    uint64_t used = tree->arena.used;
    for (int at = 0; at < 3000; at++) now = calls(tree, &source, now, 3 + at % 400);
    CHECK(tally, tree->span_count <= 3 * MAX_WORST * MAX_SPANS && tree->arena.used - used < 1 << 16);
    done(tree);
}

/* Work aside is a callee, and no call: it has no sample, is no event and none of the worst. */
static void work_aside_is_no_call(Tally *tally) {
    Tree *tree = uncounted(tally, 1 << 24);
    EventSource source = {0};
    PLAY(tree, &source, {{0, 1, 1, 0, -1, EVENT_ENTER}, {2, 9, 2, -1, -1, EVENT_ASIDE}, {7, 9, 1, -1, -1, EVENT_EXIT}});
    PLAY(tree, &source, {{9, 1, 1, -1, -1, EVENT_EXIT}});
    const Node *call = node_at(tree, 1), *work = node_at(tree, 2);
    CHECK(tally, work->parent == 1 && work->n == 1 && work->time_x == 5 && work->events_x == 0);
    CHECK(tally, tree->calls == 1 && call->events_x == 1 && call->time_x == 9);
    CHECK(tally, !work->function->reservoir && !work->function->worst && call->function->worst->items[0].count == 1);
    done(tree);
}

void test_spans(Tally *tally) {
    callers_stand_before_callees(tally);
    the_longest_stay_and_what_a_stack_remembers_is_bounded(tally);
    memory_is_bounded(tally);
    work_aside_is_no_call(tally);
}
