/* The record of an event, which a tracer writes and the call tree is built from. record/tree/records.py has the same for
 * NumPy, and a test compares the two. Integers are little-endian, as are the machines that this runs on.
 *
 * A frame is known by a number (its address) while it is open. A record that says nothing else of a field has -1 or 0
 * there.
 */
#ifndef PERFLAW_RECORD_H
#define PERFLAW_RECORD_H

#include <stdint.h>

enum {
    /* value: clock in ns; frame; code: number of the function; site: of the call; key: sampling priority or -1 */
    EVENT_ENTER = 1,
    EVENT_EXIT,  /* site: calls within it of functions that are not recorded, and that cost the tracer's time all the same */
    EVENT_YIELD, /* site: 0 if an async generator hands a value to its consumer */
    EVENT_RESUME,
    EVENT_FEATURE, /* of the frame that was entered last. value: bits of a float64; code: number of the feature */
    EVENT_DEAD,    /* every invocation above this frame has died without an event; frame 0: every one of the stack */
    EVENT_CHANGE,  /* value: increase of a counter of this thread since the last one; code: number of the metric */
    EVENT_SWITCH,  /* frame: serial number of the stack that the following events belong to; 0 is the thread's first */
    EVENT_THREAD,  /* value: number of the thread that the ring serves from here on */
    EVENT_END,     /* the thread has ended */
    EVENT_TURN,    /* frame: number of the turn, over all threads, in which the following events happened, one thread at a
                    * time; value: ns that the thread's clock has left out so far; code: how many rings there are */
    /* like ENTER, for work of the interpreter: it is no call, so it is no event and has no sample; EXIT ends it */
    EVENT_ASIDE,
    /* code; site: a call of a function that is counted and not timed; its time is its caller's own, and it ends by itself */
    EVENT_COUNT,
    /* code: a function of a library, of which contexts are put together first; written before its first call */
    EVENT_LIBRARY,
    /* code: a function of which each outermost invocation is an observation by itself; written before its first call */
    EVENT_OBSERVE,
};

enum { MAX_CODE = 1 << 20 }; /* numbers of functions are below; 0 is no function but a tracer's calibration */

enum { METRIC_TIME, METRIC_CPU, METRIC_EVENTS, METRIC_MORE }; /* a CHANGE of METRIC_CPU counts ns off the CPU */

typedef struct Event {
    int64_t value, frame;
    int32_t code, site, key, kind;
} Event;

_Static_assert(sizeof(Event) == 32, "the record of record/tree/records.py");

#endif
