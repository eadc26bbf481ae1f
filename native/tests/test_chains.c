#include "core/tree/chains.h"

#include "core/library/calltree.h"
#include "core/tree/links.h"
#include "core/tree/nodes.h"
#include "runner.h"
#include "core/tree/repeats.h"

enum { DEEPEST = 24, LEVELS = DEEPEST + 1, SHORT = 9, ASIDE_LEVEL = 5, ASIDE_CODE = 40 };

/* What is to come out, by ancestor and descendant; levels count from 1, and so do the nodes of a chain that is new. */
typedef struct Truth {
    Sum n, y, yy, yx, events_yy, events_yx;
} Truth;
typedef struct Chains {
    Tree *tree;
    EventSource source;
    int64_t now;
    uint64_t chance;
    Truth truth[LEVELS][LEVELS];
} Chains;

static int64_t drawn(Chains *chains, int64_t most) {
    chains->chance = chains->chance * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(chains->chance >> 33) % most;
}

static void tell(Chains *chains, int64_t frame, int32_t code, int32_t kind) {
    calltree_feed(chains->tree, &chains->source, &(Event){chains->now, frame, code, 0, -1, kind});
}

static void add_truth(Chains *chains, int depth, const int64_t *times, int aside) {
    for (int a = 1; a <= depth; a++)
        for (int b = a + 1; b <= depth && b <= a + MAX_DISTANCE; b++) {
            Truth *truth = &chains->truth[a][b];
            int more = aside && depth >= ASIDE_LEVEL;
            Sum x = (Sum)(depth - a + 1 + (more && a <= ASIDE_LEVEL));
            Sum y = (Sum)(depth - b + 1 + (more && b <= ASIDE_LEVEL));
            *truth = (Truth){truth->n + 1, truth->y + (Sum)times[b], truth->yy + (Sum)times[b] * (Sum)times[b],
                             truth->yx + (Sum)times[b] * (Sum)times[a], truth->events_yy + y * y, truth->events_yx + y * x};
        }
}

/* Down to a depth and back, each call of some length; aside: one of them makes another call on the way back. */
static void go(Chains *chains, int depth, int64_t longest, int aside) {
    int64_t times[LEVELS];
    for (int at = 1; at <= depth; at++) {
        times[at] = chains->now += drawn(chains, longest);
        tell(chains, at, at, EVENT_ENTER);
    }
    for (int at = depth; at; at--) {
        if (aside && at == ASIDE_LEVEL) tell(chains, 99, ASIDE_CODE, EVENT_ENTER), tell(chains, 99, ASIDE_CODE, EVENT_EXIT);
        chains->now += drawn(chains, longest);
        times[at] = chains->now - times[at];
        tell(chains, at, at, EVENT_EXIT);
    }
    add_truth(chains, depth, times, aside);
}

static int right(const Chains *chains, int a, int b) {
    const Node *node = node_at(chains->tree, a);
    int64_t at = links_find(chains->tree, node, b);
    if (at < 0) return 0;
    LinkTotals all = repeats_link_totals(node, (uint32_t)at);
    const Truth *truth = &chains->truth[a][b];
    return all.n == truth->n && all.n_once == truth->n && all.k == truth->n && all.kk == truth->n &&
           all.time_y == truth->y && all.time_ky == truth->y && all.time_yy == truth->yy && all.time_yx == truth->yx &&
           all.events.yy == truth->events_yy && all.events.yx == truth->events_yx;
}

/* ΣΣP = ΣX², in time and in events. */
static int balanced(const Node *node) {
    Sum time = node->local.time, events = node->local.events;
    for (uint32_t at = 0; at < node->pair_count; at++) {
        const Pair *pair = &node->pairs[at];
        time += pair->time * (pair->i == pair->j ? 1 : 2);
        events += pair->events * (pair->i == pair->j ? 1 : 2);
    }
    return time == node->time_xx && events == node->events_xx;
}

/* What node 1 was in all; how often, and its sums, are those of a descendant that was in every invocation of it. */
static int whole(const Node *node, const Truth *truth) {
    return node->n == truth->n && node->time_x == truth->y && node->time_xx == truth->yy &&
           node->events_xx == truth->events_yy;
}

static void check_all(Tally *tally, const Chains *chains) {
    repeats_settle(chains->tree);
    for (int b = 2; b <= DEEPEST && b <= 1 + MAX_DISTANCE; b++)
        CHECK(tally, whole(node_at(chains->tree, b), &chains->truth[1][b]));
    for (uint32_t at = 1; at < chains->tree->nodes.count; at++) CHECK(tally, balanced(node_at(chains->tree, (int32_t)at)));
    for (int a = 1; a <= DEEPEST; a++)
        for (int b = a + 1; b <= DEEPEST && b <= a + MAX_DISTANCE; b++) CHECK(tally, right(chains, a, b));
}

static Chains *begun(Tally *tally) {
    static Chains chains;
    chains = (Chains){.tree = uncounted(tally, 1 << 24), .chance = 1};
    return &chains;
}

static void the_same_chain_again_adds_up(Tally *tally) {
    Chains *chains = begun(tally);
    for (int round = 0; round < 100; round++) go(chains, DEEPEST, 50, 0);
    CHECK(tally, node_at(chains->tree, 3)->repeated.n == 99); /* the first was looked up */
    check_all(tally, chains);
    done(chains->tree);
}

/* Shorter ones, a call aside, and times whose products are of more than 64 bits. */
static void chains_that_change_add_up(Tally *tally) {
    Chains *chains = begun(tally);
    for (int round = 0; round < 300; round++) {
        int depth = drawn(chains, 4) ? DEEPEST : SHORT;
        int64_t longest = drawn(chains, 9) ? 50 : drawn(chains, 2) ? 1ll << 27 : 1ll << 32;
        go(chains, depth, longest, !drawn(chains, 5));
    }
    check_all(tally, chains);
    done(chains->tree);
}

/* Below 2^31 each product fits, and of some hundreds the sum does not. */
static void sums_of_long_times_are_moved_on(Tally *tally) {
    Chains *chains = begun(tally);
    for (int round = 0; round < 300; round++) go(chains, DEEPEST, 1 << 26, 0);
    check_all(tally, chains);
    CHECK(tally, node_at(chains->tree, 1)->link_details[0].totals);
    done(chains->tree);
}

/* More invocations than a link's counter can tell. */
static void long_runs_are_settled(Tally *tally) {
    Chains *chains = begun(tally);
    const uint64_t more = 1ull << 33;
    for (int round = 0; round < 3; round++) go(chains, DEEPEST, 50, 0);
    Node *node = node_at(chains->tree, 2);
    node->repeated.n += more;
    for (int round = 0; round < 2; round++) {
        repeats_settle(chains->tree);
        LinkTotals all = repeats_link_totals(node, 0);
        CHECK(tally, all.n == more + 3 && all.events.yy == (Sum)(more + 3) * (DEEPEST - 2) * (DEEPEST - 2));
        CHECK(tally, all.events.yx == (Sum)(more + 3) * (DEEPEST - 2) * (DEEPEST - 1) &&
              all.time_y == chains->truth[2][3].y);
        CHECK(tally, !node->repeated.n && node->events_x == (Sum)(more + 3) * (DEEPEST - 1) && balanced(node));
    }
    done(chains->tree);
}

void test_chains(Tally *tally) {
    the_same_chain_again_adds_up(tally);
    chains_that_change_add_up(tally);
    sums_of_long_times_are_moved_on(tally);
    long_runs_are_settled(tally);
}
