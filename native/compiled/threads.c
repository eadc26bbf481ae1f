#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#include "vectors.h"

/* 4 MB hold some milliseconds of the fastest program, until the recorder's next turn. Of many threads few run at
 * once, so later rings are small. */
enum { LARGE = 1 << 17, SMALL = 1 << 13, LARGE_RINGS = 4 };
enum { BELOW = 2 }; /* entries before the first open invocation */
static const uint64_t RESERVED_BYTES = 1ull << 30; /* of address space per thread; only what is touched takes memory */

static Thread *all, *idle;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_end;
static int beginners; /* threads that are about to have their first event */

Thread *threads_all(void) { return all; }

void threads_forget(void) {
    current_thread = NULL;
    all = idle = NULL;
    beginners = 0;
    pthread_mutex_init(&lock, NULL);
}

/* Other memory takes the place of the rings: a thread that is late writes to that, and one that waits for room goes on. */
void threads_drop_rings(void) {
    for (Thread *thread = all; thread; thread = thread->next) {
        if (!thread->ring.head) continue;
        size_t size = RING_START + ((size_t)thread->ring.mask + 1) * sizeof(Event);
        mmap(thread->ring.head, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        ring_stop(&thread->ring);
    }
}

void threads_count_beginning(int more) { __atomic_fetch_add(&beginners, more, __ATOMIC_SEQ_CST); }

int threads_are_quiet(void) {
    pthread_mutex_lock(&lock);
    int busy = __atomic_load_n(&beginners, __ATOMIC_SEQ_CST) != 0;
    for (const Thread *thread = all; thread; thread = thread->next) busy |= thread->busy;
    pthread_mutex_unlock(&lock);
    return !busy;
}

void signals_hold(Interruptions *before) {
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before->signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancellation);
}

void signals_release(const Interruptions *before) {
    pthread_setcancelstate(before->cancellation, NULL);
    pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}

/* ---- end of a thread ---- */

static void end(void *held) {
    Thread *thread = held;
    Interruptions before;
    if (thread != current_thread) return;
    signals_hold(&before);
    if (thread->generation == recording.active) thread_write(thread, thread->last_stamp, 0, 0, -1, -1, EVENT_END);
    current_thread = NULL;
    pthread_mutex_lock(&lock);
    thread->next_idle = idle;
    idle = thread;
    pthread_mutex_unlock(&lock);
    signals_release(&before);
}

int threads_start(void) { return !pthread_key_create(&at_end, end); }

void thread_watch_end(Thread *thread) { pthread_setspecific(at_end, thread); }

/* ---- beginning of a thread ---- */

/* Give a state a ring of this recording, and room for open invocations. 0 if there is none; then it takes part in nothing. */
static int equip(Thread *thread) {
    char path[sizeof recording.folder + 16];
    snprintf(path, sizeof path, "%s/%04u.ring", recording.folder, ++recording.ring_count);
    int error = ring_create(&thread->ring, path, recording.ring_count > LARGE_RINGS ? SMALL : LARGE);
    if (error) recording_stop(ring_obstacle(error));
    return !error && thread_grow(thread);
}

static Thread *create(void) {
    Arena arena;
    Thread *thread = arena_create(&arena, RESERVED_BYTES) ? NULL : arena_alloc(&arena, sizeof *thread);
    if (!thread) return NULL;
    thread->arena = arena;
    if (!equip(thread)) {
        ring_unmap(&thread->ring);
        arena_destroy(&arena);
        return NULL;
    }
    thread->next = all;
    return all = thread;
}

/* Have the state of an earlier recording serve this one: all that lay in its arena is forgotten, and the memory given back. */
static Thread *renew(Thread *thread) {
    Thread *next = thread->next;
    Arena arena = thread->arena;
    ring_unmap(&thread->ring);
    arena_clear(&arena);
    Thread *renewed = arena_alloc(&arena, sizeof *renewed); /* the arena's first block, as it was before */
    renewed->next = next;
    renewed->arena = arena;
    return equip(renewed) ? renewed : NULL;
}

/* Note the bounds of the thread's stack. A signal handler on a stack of its own and a coroutine stand outside of
 * them. */
static void find_stack(Thread *thread) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    thread->stack_high = UINTPTR_MAX;
    if (pthread_getattr_np(pthread_self(), &attributes)) return;
    if (!pthread_attr_getstack(&attributes, &low, &size)) {
        thread->stack_low = (uintptr_t)low;
        thread->stack_high = thread->stack_low + size;
    }
    pthread_attr_destroy(&attributes);
}

Thread *thread_create(void) {
    pthread_mutex_lock(&lock);
    Thread *thread = current_thread;
    if (!thread && (thread = idle)) idle = thread->next_idle;
    if (!thread) thread = create();
    else if (thread->generation != recording.generation) thread = renew(thread);
    if (thread) thread->number = ++recording.thread_count;
    pthread_mutex_unlock(&lock);
    if (!thread) return NULL;
    thread->top = thread->bottom;
    thread->mirrored = UINTPTR_MAX;
    thread->mirrored_span = 0;
    thread->busy = 0;
    thread->random_state = recording.seed + (uint64_t)thread->number * 0xd1342543de82ef95ull;
    thread->started_ns = clock_ns(&recording.clock) - thread->off_ns; /* of the thread that had this state before */
    thread->reading_ns = thread->queued_ns = 0;
    find_stack(thread);
    return thread;
}

__attribute__((noinline)) int thread_grow(Thread *thread) {
    KEEP_VECTORS;
    uint64_t height = (uint64_t)(thread->top - thread->bottom), size = sizeof(OpenInvocation);
    uint64_t old = thread->bottom ? (uint64_t)(thread->top_end - thread->bottom) + BELOW : 0, new = old ? old * 2 : 64;
    void *block = old ? thread->bottom + 1 - BELOW : NULL;
    if (!arena_enlarge(&thread->arena, &block, old * size, new * size)) return 0;
    OpenInvocation *first = block;
    for (int at = 0; at < BELOW; at++) first[at] = (OpenInvocation){.stack = UINTPTR_MAX};
    thread->bottom = first + BELOW - 1;
    thread->top = thread->bottom + height;
    thread->top_end = first + new - 1;
    return 1;
}

/* ---- a full ring ---- */

__attribute__((noinline)) int thread_make_room(Thread *thread) {
    KEEP_VECTORS;
    int saved = errno;
    if (recording.state != RECORDING) return 0;
    if (ring_has_room(&thread->ring)) return 1;
    int64_t wall = clock_plain_ns(), spent = cpu_spent_ns();
    const char *obstacle = ring_wait(&thread->ring, recording.recorder_pid);
    wall = clock_plain_ns() - wall;
    spent = cpu_spent_ns() - spent;
    cpu_leave_out(&thread->cpu, wall, spent);
    if (!recording.fake_clock) {
        thread->overhead_ns += wall;
        if (wall > spent) thread->off_ns += wall - spent; /* what looking for room takes of the CPU is overhead like all else */
    }
    if (obstacle) recording_stop(obstacle);
    errno = saved;
    return !obstacle;
}
