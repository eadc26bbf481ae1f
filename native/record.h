/* The record of an event: what a tracer writes and the call tree is built from. record/records.py says the same for NumPy
 * (a test compares the two). Integers are little-endian, as the machines are that this runs on. */
#ifndef PERFLAW_RECORD_H
#define PERFLAW_RECORD_H

#include <stdint.h>

enum {
    EVENT_ENTER = 1, /* value: clock in ns; frame: identity of the frame; code, site; key: sampling priority or -1 */
    EVENT_EXIT,
    EVENT_YIELD,
    EVENT_RESUME,
    EVENT_FEATURE, /* of the frame entered last. value: bits of a float64; code: number of the feature */
    EVENT_DEAD,    /* every invocation above this frame's has died without an event; frame 0: all of the stack's */
    EVENT_CHANGE,  /* value: increase of a counter of this thread since the last one; code: number of the metric */
    EVENT_SWITCH,  /* frame: serial number of the stack that the events behind this belong to; 0 is the thread's first */
    EVENT_THREAD,  /* value: number of the thread that the ring serves from here on */
    EVENT_END,     /* the thread has ended */
    EVENT_TURN,    /* frame: number of the turn, over all threads, in which the thread's events behind this happened, one
                    * thread at a time; value: ns taken out of the thread's clock so far */
    EVENT_ASIDE,   /* as ENTER, of work that the interpreter does aside: no call, so it is no event and has no sample; EXIT ends it */
};

enum { MAX_CODE = 1 << 20 }; /* numbers of functions are below; 0 is no function but a tracer's calibration */

enum { METRIC_TIME, METRIC_CPU, METRIC_EVENTS, METRIC_MORE }; /* METRIC_CPU's CHANGE counts ns off the CPU */

typedef struct Event {
    int64_t value, frame;
    int32_t code, site, key, kind;
} Event;

_Static_assert(sizeof(Event) == 32, "the record of record/records.py");

#endif
