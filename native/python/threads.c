#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* 4 MB hold some milliseconds of the fastest program, until the recorder's next turn. Of many threads few run at
 * once, so later rings are small. */
enum { LARGE = 1 << 17, SMALL = 1 << 13, LARGE_RINGS = 4 };

static Thread *all, *idle;
static __thread Thread *own __attribute__((tls_model("initial-exec"))); /* as current_thread, also between recordings */
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER; /* threads end without the GIL */
static pthread_key_t at_end;

Thread *threads_all(void) { return all; }

void threads_forget(void) {
    current_thread = own = NULL;
    all = idle = NULL; /* their memory is lost, because a child that frees after a fork may deadlock */
    pthread_mutex_init(&idle_lock, NULL);
}

/* ---- end of a thread ---- */

/* Another thread may hold the GIL. */
static void end(void *held) {
    Thread *thread = held;
    if (thread != own) return; /* in a forked child */
    pthread_mutex_lock(&idle_lock);
    int is_recorded = recording.active && thread == current_thread;
    thread->current = NULL;
    thread->is_ending = is_recorded; /* its ring stays mapped meanwhile */
    pthread_mutex_unlock(&idle_lock);
    if (is_recorded) thread_write(thread, thread->last_stamp, 0, 0, -1, -1, EVENT_END);
    current_thread = own = NULL;
    pthread_mutex_lock(&idle_lock);
    thread->is_ending = 0;
    thread->next_idle = idle;
    idle = thread;
    pthread_mutex_unlock(&idle_lock);
}

int threads_start(void) {
    static int is_started;
    return is_started || (is_started = !pthread_key_create(&at_end, end));
}

void threads_release(void) {
    pthread_mutex_lock(&idle_lock);
    for (Thread *thread = all; thread; thread = thread->next) {
        if (thread->is_ending) continue;
        if (thread->current) *thread->current = NULL;
        thread->process = 0;
        ring_unmap(&thread->ring);
    }
    pthread_mutex_unlock(&idle_lock);
}

void thread_watch_end(Thread *thread) { pthread_setspecific(at_end, thread); }

/* ---- beginning of a thread ---- */

static Thread *take_idle(void) {
    pthread_mutex_lock(&idle_lock);
    Thread *thread = idle;
    if (thread) idle = thread->next_idle;
    pthread_mutex_unlock(&idle_lock);
    return thread;
}

/* A ring for a thread that has none in this recording. 0 if there is no room in the spool. */
static int make_ring(Thread *thread) {
    char path[sizeof recording.folder + 16];
    snprintf(path, sizeof path, "%s/%04u.ring", recording.folder, ++recording.ring_count);
    int error = ring_create(&thread->ring, path, recording.ring_count > LARGE_RINGS ? SMALL : LARGE);
    if (error) {
        recording_stop(ring_obstacle(error));
        return 0;
    }
    thread->process = recording.process;
    thread->overhead_ns = thread->last_stamp = thread->counting_ns = thread->waited_ns = thread->off_ns = 0;
    thread->lost_records = 0;
    return 1;
}

static Thread *create(void) {
    Thread *thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    thread->next = all;
    return all = thread;
}

Thread *thread_create(void) {
    if (!own) own = take_idle();
    if (!own) own = create();
    Thread *thread = own;
    if (!thread) return NULL;
    thread->current = &current_thread;
    if (thread->process != recording.process) {
        ring_unmap(&thread->ring);
        if (!make_ring(thread)) return NULL;
    }
    thread->number = ++recording.thread_count;
    thread->height = thread->observation = 0;
#if PY_VERSION_HEX < 0x030C0000
    thread->earlier = 0;
#endif
    thread->counting = NULL;
    thread->watched = NULL;
    thread->overhead_depth = 0;
    thread->jump = NULL;
    thread->overhead_before = thread->overhead_ns;
    thread->waited_before = thread->waited_ns;
    thread->off_before = thread->off_ns;
    thread->greenlets = NULL; /* a thread that ended with unfinished greenlets leaves their few bytes behind */
    thread->random_state = recording.settings.seed + (uint64_t)thread->number * 0xd1342543de82ef95ull;
    return thread;
}

int thread_grow(Thread *thread) {
    uint32_t capacity = thread->capacity ? thread->capacity * 2 : 64;
    OpenFrame *open = realloc(thread->open, capacity * sizeof *open);
    if (!open) return 0;
    thread->open = open;
    thread->capacity = capacity;
    return 1;
}

/* ---- a full ring ---- */

int thread_make_room(Thread *thread) {
    if (!recording.active || !thread->ring.head) return 0;
    if (ring_has_room(&thread->ring)) return 1;
    int64_t wall = clock_plain_ns(), spent = cpu_spent_ns();
    const char *obstacle = ring_wait(&thread->ring, recording.settings.recorder_pid);
    wall = clock_plain_ns() - wall;
    cpu_leave_out(&thread->cpu, wall, cpu_spent_ns() - spent);
    thread->waited_ns += wall;
    if (!recording.settings.fake_clock) thread->overhead_ns += wall;
    if (obstacle) recording_stop(obstacle);
    return !obstacle;
}
