#include "events.h"

#include "definitions.h"

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

/* ---- frames that were open when a program was attached to ---- */

enum { MAX_NAMES_LENGTH = 2048 }; /* of what the manifest says of them */

/* Write that a frame was entered before. Its callers are open already. */
static void open_earlier(Thread *thread, Frame *frame) {
    Function *function = function_of(frame);
    if (!function || function->mode == NEVER || !event_is_wanted(thread, function)) return;
    int64_t now = clock_ns(&recording.clock);
    if (function->process != recording.process && !event_define(thread, function, &now)) return;
    int32_t site = event_site(thread, frame->previous);
    if (!event_push(thread, function, frame)) return;
#if PY_VERSION_HEX < 0x030C0000
    thread->earlier_code[thread->earlier++] = function->code;
#endif
    int64_t stamp = thread_stamp(thread, now);
    thread_write(thread, stamp, (int64_t)(intptr_t)frame, function->number, site, -1, EVENT_RESUME);
    if (recording.earlier_names.length < MAX_NAMES_LENGTH)
        define_note(&recording.earlier_names, "earlier", function->name);
}

void event_open_earlier(Thread *thread, Frame *innermost) {
    Frame *open[MAX_EARLIER];
    uint32_t count = 0;
    /* Which of them are closed is known of one stack a thread; and from Python 3.12 on no event may tell their end, because
     * the interpreter has events told at once only by the code of frames that are not switched out. */
    if (greenlets_in_use) return;
    for (Frame *at = frame_visible(innermost); at && count < MAX_EARLIER; at = frame_visible(at->previous))
        open[count++] = at;
    int64_t stamp = overhead_begin();
    while (count) open_earlier(thread, open[--count]);
    overhead_end(stamp);
}

#if PY_VERSION_HEX < 0x030C0000

/* Whether a frame is among the callers, and no later one at the same place. */
static int is_caller(Frame *linked, const Frame *frame, const PyCodeObject *code) {
    for (Frame *at = frame_visible(linked); at; at = frame_visible(at->previous))
        if (at == frame) return frame_code(at) == code;
    return 0;
}

void event_close_earlier(Thread *thread, Frame *linked) {
    while (thread->height && thread->height <= thread->earlier) {
        const Frame *top = thread->open[thread->height - 1].frame;
        if (is_caller(linked, top, thread->earlier_code[thread->height - 1])) return;
        thread_write(thread, thread->last_stamp, (int64_t)(intptr_t)top, 1, -1, -1, EVENT_EXIT);
        thread->earlier = --thread->height;
    }
}

#endif
