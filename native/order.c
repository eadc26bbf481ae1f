#include "order.h"

#include "stacks.h"

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

static int wait(Feeds *feeds, Feed *feed) {
    feed->waits = 1;
    feeds->waiting++;
    return 0;
}

int order_allows(Feeds *feeds, Feed *feed, const Tree *tree, const Event *event) {
    int suspended = stacks_suspends(tree, event->frame), resumes = event->kind == EVENT_RESUME;
    if ((resumes || suspended) && feeds->count > 1 && !others_are_later(feeds, feed)) return wait(feeds, feed);
    if (resumes && !suspended && (!feed->asked || feed->asked == feeds->step)) {
        feed->asked = feeds->step;
        return 0;
    }
    feed->asked = 0;
    return 1;
}
