#include "order.h"

#include "core/tree/stacks.h"

/* The turn that the next record of a feed belongs to. */
static int64_t turn_of(const Feed *feed, const Event *next) {
    return next->kind == EVENT_TURN ? next->frame : feed->source.turn;
}

static int others_are_later(const Feeds *feeds, const Feed *feed) {
    for (uint32_t at = 0; at < feeds->count; at++) {
        Feed *other = &feeds->feed[at];
        const Event *next;
        if (other != feed && ring_peek(&other->ring, &next) && turn_of(other, next) < feed->source.turn) return 0;
    }
    return 1;
}

static int refuse(Feeds *feeds, Feed *feed) {
    feed->is_waiting = 1;
    feeds->waiting++;
    return 0;
}

int order_allows(Feeds *feeds, Feed *feed, const Tree *tree, const Event *event) {
    int is_suspended = stacks_has_suspended(tree, event->frame);
    int needs_earlier_turns = event->kind != EVENT_ENTER || is_suspended;
    if (needs_earlier_turns && feeds->count > 1 && !others_are_later(feeds, feed)) return refuse(feeds, feed);
    int is_unknown = event->kind == EVENT_RESUME && !is_suspended;
    int lacks_rings = needs_earlier_turns && feed->source.rings > feeds->count;
    if ((is_unknown || lacks_rings) && (!feed->awaited_in || feed->awaited_in == feeds->step)) {
        feed->awaited_in = feeds->step;
        return 0;
    }
    feed->awaited_in = 0;
    return 1;
}
