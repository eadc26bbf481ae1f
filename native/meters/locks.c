/* Waiting for mutexes, rwlocks and condition variables, and how long mutexes and rwlocks are held.
 *
 * A lock that is free is taken by its try function, without a reading of the clock unless the time that it is held is
 * asked for: then there are two. What is held is known for the first 64 locks that a thread has at once. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))

enum { MOST_HELD = 64 };
OF_THREAD int64_t wait_ns;
OF_THREAD int64_t hold_ns;
OF_THREAD struct { const void *lock; int64_t since; } held[MOST_HELD];
OF_THREAD int held_count;
static int holds_are_wanted;

EXPORTED int64_t perflaw_lock_wait_ns(void) { return wait_ns; }
EXPORTED int64_t perflaw_lock_hold_ns(void) { return hold_ns; }

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the real functions ---- */

/* dlsym gives the oldest version of the functions of condition variables, which have another layout. */
static void *found(const char *name, const char *version) {
    void *function = dlvsym(RTLD_NEXT, name, version);
    return function ? function : dlsym(RTLD_NEXT, name);
}

#define REAL(result, name, version, ...) \
    typedef result (*name##_type)(__VA_ARGS__); \
    static name##_type real_##name(void) { \
        static name##_type function; \
        name##_type known = __atomic_load_n(&function, __ATOMIC_RELAXED); \
        if (!known) __atomic_store_n(&function, known = (name##_type)found(#name, version), __ATOMIC_RELAXED); \
        return known; \
    }
REAL(int, pthread_mutex_lock, "GLIBC_2.2.5", pthread_mutex_t *)
REAL(int, pthread_mutex_trylock, "GLIBC_2.2.5", pthread_mutex_t *)
REAL(int, pthread_mutex_timedlock, "GLIBC_2.2.5", pthread_mutex_t *, const struct timespec *)
REAL(int, pthread_mutex_unlock, "GLIBC_2.2.5", pthread_mutex_t *)
REAL(int, pthread_rwlock_rdlock, "GLIBC_2.2.5", pthread_rwlock_t *)
REAL(int, pthread_rwlock_tryrdlock, "GLIBC_2.2.5", pthread_rwlock_t *)
REAL(int, pthread_rwlock_wrlock, "GLIBC_2.2.5", pthread_rwlock_t *)
REAL(int, pthread_rwlock_trywrlock, "GLIBC_2.2.5", pthread_rwlock_t *)
REAL(int, pthread_rwlock_unlock, "GLIBC_2.2.5", pthread_rwlock_t *)
REAL(int, pthread_cond_wait, "GLIBC_2.3.2", pthread_cond_t *, pthread_mutex_t *)
REAL(int, pthread_cond_timedwait, "GLIBC_2.3.2", pthread_cond_t *, pthread_mutex_t *, const struct timespec *)
REAL(int, pthread_cond_clockwait, "GLIBC_2.30", pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *)

__attribute__((constructor)) static void read_settings(void) {
    const char *metrics = getenv("PERFLAW_TARGET_METRICS");
    holds_are_wanted = metrics && strstr(metrics, "lock_hold");
}

/* ---- what is held ---- */

static void take(const void *lock) {
    if (!holds_are_wanted) return;
    if (held_count < MOST_HELD) {
        held[held_count].lock = lock;
        held[held_count].since = now_ns();
    }
    held_count++;
}

/* Locks are mostly given back in the reverse order, so the last ones are looked at first. */
static void give_back(const void *lock) {
    if (!holds_are_wanted || !held_count) return;
    int last = held_count < MOST_HELD ? held_count : MOST_HELD, at = last - 1;
    while (at >= 0 && held[at].lock != lock) at--;
    if (at >= 0) {
        hold_ns += now_ns() - held[at].since;
        memmove(&held[at], &held[at + 1], (size_t)(last - at - 1) * sizeof *held);
    }
    if (at >= 0 || held_count > MOST_HELD) held_count--;
}

static int has(int error) { return !error || error == EOWNERDEAD; }

static int taken(const void *lock, int error) {
    if (has(error)) take(lock);
    return error;
}

/* ---- what stands before the C library ---- */

#define WAITED(call) ({ int64_t begun = now_ns(); int error = (call); wait_ns += now_ns() - begun; error; })
/* A lock that is free is taken at once; every other result of the try function is left to the real one. */
#define LOCKED(lock, try, call) ({ int tried = (try); taken(lock, has(tried) ? tried : WAITED(call)); })

EXPORTED int pthread_mutex_lock(pthread_mutex_t *lock) {
    return LOCKED(lock, real_pthread_mutex_trylock()(lock), real_pthread_mutex_lock()(lock));
}

EXPORTED int pthread_mutex_trylock(pthread_mutex_t *lock) { return taken(lock, real_pthread_mutex_trylock()(lock)); }

EXPORTED int pthread_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until) {
    return LOCKED(lock, real_pthread_mutex_trylock()(lock), real_pthread_mutex_timedlock()(lock, until));
}

EXPORTED int pthread_mutex_unlock(pthread_mutex_t *lock) {
    give_back(lock);
    return real_pthread_mutex_unlock()(lock);
}

EXPORTED int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    return LOCKED(lock, real_pthread_rwlock_tryrdlock()(lock), real_pthread_rwlock_rdlock()(lock));
}

EXPORTED int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) { return taken(lock, real_pthread_rwlock_tryrdlock()(lock)); }

EXPORTED int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    return LOCKED(lock, real_pthread_rwlock_trywrlock()(lock), real_pthread_rwlock_wrlock()(lock));
}

EXPORTED int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) { return taken(lock, real_pthread_rwlock_trywrlock()(lock)); }

EXPORTED int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    give_back(lock);
    return real_pthread_rwlock_unlock()(lock);
}

/* While a condition is waited for, its mutex is not held. A thread that is cancelled there never comes back. */
#define CONDITION(lock, call) ({ give_back(lock); int ended = WAITED(call); take(lock); ended; })

EXPORTED int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
    return CONDITION(lock, real_pthread_cond_wait()(condition, lock));
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until) {
    return CONDITION(lock, real_pthread_cond_timedwait()(condition, lock, until));
}

EXPORTED int pthread_cond_clockwait(
    pthread_cond_t *condition, pthread_mutex_t *lock, clockid_t clock, const struct timespec *until) {
    return CONDITION(lock, real_pthread_cond_clockwait()(condition, lock, clock, until));
}
