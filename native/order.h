/* The order in which rings are read, where it matters.
 *
 * Each thread has a ring of its own, and what happened in one is read before or after what happened in another, as it
 * comes. That is right but for generators and coroutines that go on in another thread: the RESUME there must be read
 * after the YIELD here. Threads take turns, as the interpreter lets them, and number them. So a RESUME waits until no other
 * ring has a record of an earlier turn, and one of a frame that nobody has seen suspended waits until new rings have been
 * looked for. The ring with the earliest turn never waits for another, so somebody always goes on.
 *
 * Ownership: a Feed is its Core's. Threads: one at a time. Cost: nothing but a test of the kind for other events, and
 * with one ring; a glance at every other ring for a RESUME.
 */
#ifndef PERFLAW_ORDER_H
#define PERFLAW_ORDER_H

#include "layout.h"
#include "ring.h"

typedef struct Feed {
    Ring ring;
    Source source;
    uint64_t asked; /* the step in which its next record was found to resume an unknown frame; 0 for none */
    int waits;      /* whether its next record must wait for another ring's */
} Feed;

typedef struct Feeds {
    Feed *feed;
    uint32_t count, waiting; /* how many there are, how many of them wait for another */
    uint64_t step;           /* number of the present step, from 1 */
} Feeds;

/* The feed is to be looked at again. */
static inline void order_forget(Feeds *feeds, Feed *feed) {
    feeds->waiting -= (uint32_t)feed->waits;
    feed->waits = 0;
}

/* Whether order_allows must be asked. An ENTER may be of a frame whose address is that of a suspended one, which ended
 * unseen or whose end is yet to be read. */
static inline int order_matters(const Feeds *feeds, const Tree *tree, const Event *event) {
    return event->kind == EVENT_RESUME || (event->kind == EVENT_ENTER && tree->suspended.used && feeds->count > 1);
}
/* Whether the tree may take in this next record of the feed now. */
int order_allows(Feeds *feeds, Feed *feed, const Tree *tree, const Event *event);

#endif
