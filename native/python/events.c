#include "events.h"

int event_uncover(Thread *thread, const Frame *frame) {
#if PY_VERSION_HEX >= 0x030C0000
    /* A frame that is not recorded is not looked for, because the stack may be 200,000 frames high. */
    const Function *function = function_of((Frame *)frame);
    if (!function || function->mode != ALWAYS || !event_is_wanted(thread, function)) return 0;
#endif
    for (uint32_t at = thread->height; at--;)
        if (thread->open[at].frame == frame) {
            /* This comes before the features of the frame: readers must know that it is the innermost one now. */
            if (branches_wanted) thread_write(thread, thread->last_stamp, (int64_t)(intptr_t)frame, 1, -1, -1, EVENT_DEAD);
            thread->height = at + 1;
            return 1;
        }
    return 0;
}
