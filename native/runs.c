/* Runs of links: what has been the same in one invocation after another, and where it ends. */
#include "runs.h"

#include "lanes.h"

/* ---- a run is settled ---- */

/* So many invocations of a link's run more, and what its times and the ancestor's events were in all. */
static void settle_more(const Link *link, uint64_t count, int64_t time, uint64_t ancestor_events, Settled *settled) {
    Sum repeats = count, k = link->calls, y = link->events;
    settled->n += count;
    if (link->calls == 1) settled->n_once += count;
    settled->k += k * repeats;
    settled->kk += k * k * repeats;
    settled->time_ky += k * widened(time);
    settled->time_y += widened(time);
    settled->events.ky += k * y * repeats;
    settled->events.y += y * repeats;
    settled->events.yy += y * y * repeats;
    settled->events.yx += y * ancestor_events;
}

static void settle(const Link *link, Settled *settled) {
    settle_more(link, link->repeats, link->time, link->ancestor_events, settled);
}

static void settle_times(const Link *link, Settled *settled) {
    settled->time_yy += link->time_yy;
    settled->time_yx += link->time_yx;
}

static Settled *settled_of(Tree *tree, Node *node, const Link *link) {
    LinkMore *more = &node->more[link - node->links];
    if (!more->settled) more->settled = arena_alloc(&tree->arena, sizeof(Settled));
    return more->settled;
}

/* Numbers too large for a run: it would take an hour to get there, but exact is exact. */
static void add_huge(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events) {
    Settled *settled = settled_of(tree, node, link);
    if (!settled) return;
    Sum k = touch->calls, y = widened(touch->events);
    settled->n++;
    settled->n_once += k == 1;
    settled->k += k;
    settled->kk += k * k;
    settled->time_ky += k * widened(touch->time);
    settled->time_y += widened(touch->time);
    LinkSums *sums = &settled->events;
    *sums = (LinkSums){sums->ky + k * y, sums->y + y, sums->yy + y * y, sums->yx + y * widened(events)};
}

/* End the run, if there is one, and begin that of the touch. */
void run_turn(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events) {
    Settled *settled = link->repeats ? settled_of(tree, node, link) : NULL;
    if (settled) settle(link, settled);
    int huge = (touch->calls | (uint64_t)touch->events) >> 32 != 0;
    if (huge) add_huge(tree, node, link, touch, events);
    link->repeats = !huge;
    link->calls = huge ? 0 : (uint32_t)touch->calls;
    link->events = huge ? 0 : (uint32_t)touch->events;
    link->time = huge ? 0 : touch->time;
    link->ancestor_events = huge ? 0 : (uint64_t)events;
}

/* The sums of products have become large: move them on before the next product makes them overflow. */
void run_move_on(Tree *tree, Node *node, Link *link) {
    Settled *settled = settled_of(tree, node, link);
    if (settled) settle_times(link, settled);
    link->time_yy = link->time_yx = 0;
}

/* Products of times that are negative or of two seconds and more. */
void run_add_wide(Tree *tree, Node *node, const Link *link, int64_t time, int64_t x) {
    Settled *settled = settled_of(tree, node, link);
    if (!settled) return;
    settled->time_yy += product(time, time);
    settled->time_yx += product(time, x);
}


/* ---- what the last invocations were ---- */

static uint64_t ancestor_events_of(const Last *last) { return last->repeats * (uint64_t)last->events; }

/* A run that is too long for its counter. */
static void settle_long(Tree *tree, Node *node, Link *link) {
    Settled *settled = settled_of(tree, node, link);
    if (!settled) return;
    settle(link, settled);
    settle_more(link, node->last.repeats, 0, ancestor_events_of(&node->last), settled);
    link->time = 0;
    link->repeats = 0;
    link->ancestor_events = 0;
}

/* What they add to a link, the sums of times among it. */
static void catch_up(Tree *tree, Node *node, Link *link, uint64_t y, uint64_t yy, uint64_t yx) {
    const Last *last = &node->last;
    link->time += (int64_t)y;
    link->time_yy += yy;
    link->time_yx += yx;
    if ((link->time_yy | link->time_yx) >> 63) run_move_on(tree, node, link);
    if (link->repeats + last->repeats > UINT32_MAX) {
        settle_long(tree, node, link);
        return;
    }
    link->repeats += (uint32_t)last->repeats;
    link->ancestor_events += ancestor_events_of(last);
}

void runs_catch_up(Tree *tree, Node *node) {
    const Last *last = &node->last;
    if (last->count) catch_up(tree, node, node->links + last->first, last->y, last->yy, last->yx);
    for (uint32_t at = 1; at < last->count; at++) {
        const Below *four = &last->deeper[(at - 1) / 4];
        uint32_t one = (at - 1) % 4;
        catch_up(tree, node, &node->links[last->first + at], four->y[one], four->yy[one], four->yx[one]);
    }
}

Settled runs_settled(const Node *node, uint32_t at) {
    const Link *link = &node->links[at];
    const Settled *settled = node->more[at].settled;
    Settled all = settled ? *settled : (Settled){0};
    settle(link, &all);
    settle_times(link, &all);
    return all;
}
