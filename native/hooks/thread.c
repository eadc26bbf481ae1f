/* A ring, a stack of open invocations and a table of functions for every thread. The ring of a thread that has ended
 * serves a later one. */
#include "hooks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* 4 MB hold some milliseconds of the fastest program, until the recorder's next turn. Many threads seldom all run. */
enum { LARGE = 1 << 17, SMALL = 1 << 13, LARGE_RINGS = 4 };
static const uint64_t MEMORY = 1ull << 30; /* reserved for a thread, of which it takes what it touches */

__thread Thread *current_thread __attribute__((tls_model("initial-exec")));
static __thread int beginning __attribute__((tls_model("initial-exec")));
static Thread *all, *idle;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_end;

Thread *threads_all(void) { return all; }

void threads_forget(void) {
    current_thread = NULL;
    all = idle = NULL;
    pthread_mutex_init(&lock, NULL);
}

/* Handlers wait while locks are held, which they may want themselves; and a short timer would interrupt each call. */
static void hold_signals(sigset_t *before) {
    sigset_t all_of_them;
    sigfillset(&all_of_them);
    pthread_sigmask(SIG_SETMASK, &all_of_them, before);
}
static void release_signals(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

static void ended(void *held) {
    Thread *thread = held;
    sigset_t before;
    if (hooks.state != RECORDING || thread != current_thread) return;
    hold_signals(&before);
    hooks_write(thread, thread->last, 0, 0, -1, -1, EVENT_END);
    current_thread = NULL;
    pthread_mutex_lock(&lock);
    thread->free = idle;
    idle = thread;
    pthread_mutex_unlock(&lock);
    release_signals(&before);
}

int threads_start(void) { return !pthread_key_create(&at_end, ended); }

static Thread *made(void) {
    Arena arena;
    char path[sizeof hooks.folder + 16];
    Thread *thread = arena_create(&arena, MEMORY) ? NULL : arena_alloc(&arena, sizeof *thread);
    if (!thread) return NULL;
    thread->arena = arena;
    snprintf(path, sizeof path, "%s/%04u.ring", hooks.folder, ++hooks.rings);
    int error = ring_create(&thread->ring, path, hooks.rings > LARGE_RINGS ? SMALL : LARGE);
    if (error) {
        arena_forget(&arena);
        process_stop(error == ENOSPC ? "cannot write to the spool: the disk is full" : "cannot write to the spool");
        return NULL;
    }
    thread->next = all;
    return all = thread;
}

/* A handler on a stack of its own and a coroutine stand outside of these bounds. */
static void find_stack(Thread *thread) {
    pthread_attr_t about;
    void *low;
    size_t size;
    thread->high = UINTPTR_MAX;
    if (pthread_getattr_np(pthread_self(), &about)) return;
    if (!pthread_attr_getstack(&about, &low, &size)) {
        thread->low = (uintptr_t)low;
        thread->high = thread->low + size;
    }
    pthread_attr_destroy(&about);
}

static Thread *taken_or_made(void) {
    pthread_mutex_lock(&lock);
    Thread *thread = idle;
    if (thread) idle = thread->free;
    else thread = made();
    if (thread) thread->number = ++hooks.threads;
    pthread_mutex_unlock(&lock);
    return thread;
}

static Thread *begin(void) {
    if (hooks.state != RECORDING && !process_begin()) return NULL;
    Thread *thread = taken_or_made();
    if (!thread) return NULL;
    thread->height = 0;
    thread->busy = 0;
    thread->chance = hooks.seed + (uint64_t)thread->number * 0xd1342543de82ef95ull;
    find_stack(thread);
    const char *how = cpu_start(&thread->cpu, &hooks.clock);
    if (hooks.fake) thread->cpu.flag = (volatile uint64_t *)&cpu_armed; /* never off the CPU */
    if (thread->number == 1) tell_words("cpu", hooks.fake ? "as the fake clock: never waiting" : how);
    hooks_write(thread, thread->number, 0, 0, -1, -1, EVENT_THREAD);
    pthread_setspecific(at_end, thread);
    return current_thread = thread;
}

Thread *thread_begin(void) {
    sigset_t before;
    if (beginning) return NULL; /* an instrumented malloc, called by what begins here */
    hold_signals(&before);
    beginning = 1;
    Thread *thread = begin();
    if (thread && thread->number == 1 && !hooks.fake) calibrate(thread);
    if (thread && thread->number == 1) tell_start();
    beginning = 0;
    release_signals(&before);
    return thread;
}

int thread_grow(Thread *thread) {
    uint64_t old = thread->room, new = old ? old * 2 : 64;
    if (!arena_enlarge(&thread->arena, (void **)&thread->open, old * sizeof(Open), new * sizeof(Open))) return 0;
    thread->room = (uint32_t)new;
    return 1;
}

/* ---- a full ring ---- */

int thread_make_room(Thread *thread) {
    int saved = errno;
    if (hooks.state != RECORDING) return 0;
    if (ring_has_room(&thread->ring)) return 1;
    int64_t wall = clock_plain_ns(), spent = cpu_spent_ns();
    const char *why = ring_wait(&thread->ring, hooks.recorder);
    wall = clock_plain_ns() - wall;
    cpu_leave_out(&thread->cpu, wall, cpu_spent_ns() - spent);
    if (!hooks.fake) thread->taken += wall;
    if (why) process_stop(why);
    errno = saved;
    return !why;
}
