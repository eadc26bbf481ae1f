/* The order in which rings are read, where it matters.
 *
 * Each thread has a ring of its own, and what happened in one thread may be read before or after what happened in
 * another. That is right except for generators and coroutines that go on in another thread: the RESUME there must be
 * read after the YIELD here, and a YIELD before that of a later generator whose frame has the same address. Threads take
 * turns, as the interpreter lets them, and number the turns. So a RESUME or YIELD waits until no other ring has a record
 * of an earlier turn. It waits until new rings were looked for if nobody has seen the frame suspended that it resumes, or
 * if there were more rings in its turn than are read. The ring with the earliest turn never waits for another, so one always goes on.
 *
 * Ownership: a Feed is its Core's. Threads: one at a time. Cost: a test of the kind for most events; a look at every
 * other ring for a RESUME or YIELD.
 */
#ifndef PERFLAW_ORDER_H
#define PERFLAW_ORDER_H

#include "core/base/ring.h"
#include "core/tree/tree.h"

typedef struct Feed {
    Ring ring;
    EventSource source;
    uint64_t awaited_in; /* the step in which its next record was found to resume an unknown frame; 0 for none */
    int is_waiting;      /* whether its next record must wait for another ring's */
} Feed;

typedef struct Feeds {
    Feed *feed;
    uint32_t count, waiting; /* how many there are, and how many of them wait for another */
    uint64_t step;           /* number of the present step, from 1 */
} Feeds;

/* The feed is looked at again. */
static inline void feed_reset(Feeds *feeds, Feed *feed) {
    feeds->waiting -= (uint32_t)feed->is_waiting;
    feed->is_waiting = 0;
}

/* Whether order_allows must be asked. The frame of an ENTER may have the address of a suspended one, which ended
 * without an event or whose end is yet to be read. Generators of a calibration, whose function is 0, are nobody's. */
static inline int order_matters(const Feeds *feeds, const Tree *tree, const Event *event) {
    if (event->kind == EVENT_RESUME) return event->code != 0;
    return feeds->count > 1 && (event->kind == EVENT_YIELD || (event->kind == EVENT_ENTER && tree->suspended.used));
}
/* Whether the tree may take this next record of the feed now. */
int order_allows(Feeds *feeds, Feed *feed, const Tree *tree, const Event *event);

#endif
