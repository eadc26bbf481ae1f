/* A ring and a stack of open frames for every thread. The ring of a thread that has ended serves a later one. */
#include "event.h"
#include "stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* 4 MB hold some milliseconds of the fastest program, until the recorder's next turn. Many threads seldom all run. */
enum { LARGE = 1 << 17, SMALL = 1 << 13, LARGE_RINGS = 4 };

__thread Thread *current_thread __attribute__((tls_model("initial-exec")));
static Thread *all, *idle;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER; /* threads end without the GIL */
static pthread_key_t at_end;

Thread *threads_all(void) { return all; }

void threads_forget(void) {
    current_thread = NULL;
    all = idle = NULL; /* what they point to is lost: a child that frees after a fork may deadlock */
    pthread_mutex_init(&idle_lock, NULL);
}

static Thread *take_idle(void) {
    pthread_mutex_lock(&idle_lock);
    Thread *thread = idle;
    if (thread) idle = thread->free;
    pthread_mutex_unlock(&idle_lock);
    return thread;
}

/* The thread has ended; the GIL may be anybody's. */
static void ended(void *held) {
    Thread *thread = held;
    if (!recorder.active || thread != current_thread) return;
    event_write(thread, thread->last, 0, 0, -1, -1, EVENT_END);
    current_thread = NULL;
    pthread_mutex_lock(&idle_lock);
    thread->free = idle;
    idle = thread;
    pthread_mutex_unlock(&idle_lock);
}

int threads_start(void) { return !pthread_key_create(&at_end, ended); }

static Thread *made(void) {
    Thread *thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    char path[sizeof recorder.folder + 16];
    snprintf(path, sizeof path, "%s/%04u.ring", recorder.folder, ++recorder.rings);
    int error = ring_create(&thread->ring, path, recorder.rings > LARGE_RINGS ? SMALL : LARGE);
    if (error) {
        free(thread);
        process_stop(error == ENOSPC ? "cannot write to the spool: the disk is full" : "cannot write to the spool");
        return NULL;
    }
    thread->next = all;
    return all = thread;
}

Thread *thread_begin(void) {
    if (!recorder.active || (recorder.forked && !process_continue())) return NULL;
    Thread *thread = take_idle();
    if (!thread) thread = made();
    if (!thread) return NULL;
    thread->number = ++recorder.threads;
    thread->height = 0;
    thread->counting = NULL;
    thread->jump = NULL;
    thread->stacks = NULL; /* a thread that ended with greenlets unfinished leaves their few bytes behind */
    thread->chance = recorder.settings.seed + (uint64_t)thread->number * 0xd1342543de82ef95ull;
    stack_find_bounds(thread);
    metrics_begin(thread);
    event_write(thread, thread->number, 0, 0, -1, -1, EVENT_THREAD);
    pthread_setspecific(at_end, thread);
    return current_thread = thread;
}

int64_t thread_pause(void) {
    int64_t now = clock_ns(&recorder.clock);
    if (current_thread && cpu_may_be_off(&current_thread->cpu, now)) metrics_tell_cpu(current_thread, now);
    return now;
}

void thread_take_out(int64_t since) {
    if (!current_thread) return;
    int64_t now = clock_ns(&recorder.clock);
    if (cpu_may_be_off(&current_thread->cpu, now)) cpu_off(&current_thread->cpu, &recorder.clock);
    current_thread->taken += clock_ns(&recorder.clock) - since;
}

int thread_grow(Thread *thread) {
    uint32_t room = thread->room ? thread->room * 2 : 64;
    Frame **open = realloc(thread->open, room * sizeof *open);
    if (!open) return 0;
    thread->open = open;
    thread->room = room;
    return 1;
}

void event_turn(Thread *thread) {
    recorder.turn = thread;
    event_write(thread, thread->taken, ++recorder.turns, 0, -1, -1, EVENT_TURN);
}

int event_uncover(Thread *thread, const Frame *frame) {
#if PY_VERSION_HEX >= 0x030C0000
    /* A frame that is not recorded is not looked for: the stack may be 200,000 high. */
    const Function *function = function_of((Frame *)frame);
    if (!function || !event_wanted(function, frame->previous)) return 0;
#endif
    for (uint32_t at = thread->height; at--;)
        if (thread->open[at] == frame) {
            /* Before features of this frame: what stands above it is no more. */
            if (branches_wanted) event_write(thread, thread->last, (int64_t)(intptr_t)frame, 1, -1, -1, EVENT_DEAD);
            thread->height = at + 1;
            return 1;
        }
    return 0;
}

/* ---- a full ring ---- */

int thread_make_room(Thread *thread) {
    if (!recorder.active) return 0;
    if (ring_has_room(&thread->ring)) return 1;
    int64_t wall = clock_plain_ns(), spent = cpu_spent_ns();
    const char *why = ring_wait(&thread->ring, recorder.settings.recorder);
    wall = clock_plain_ns() - wall;
    cpu_leave_out(&thread->cpu, wall, cpu_spent_ns() - spent);
    if (!recorder.settings.fake) thread->taken += wall;
    if (why) process_stop(why);
    return !why;
}
