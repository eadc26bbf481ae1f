/* What a writer does whose ring is full. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "ring.h"

static const int64_t PATIENCE_NS = 10000000000, PAUSE_NS = 50000;

static int lives(int reader) { return !reader || !kill(reader, 0) || errno == EPERM; }

const char *ring_wait(Ring *ring, int reader) {
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int64_t waited = 0; waited < PATIENCE_NS && lives(reader); waited += PAUSE_NS) {
        if (ring->head->stop) return "the recorder asked to stop";
        if (ring_has_room(ring)) return NULL;
        nanosleep(&pause, NULL);
    }
    return "the recorder does not keep up or has gone";
}
