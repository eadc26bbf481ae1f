/* Recording compiled programs: the hooks of -finstrument-functions (gcc and clang), in a library that is preloaded.
 *
 *     hooks.c     the hooks, and which invocations are still open    thread.c    a ring, a stack and a table a thread
 *     known.c     numbers of functions                               process.c   one recording a process, fork
 *     tell.c      lines of the definitions file                      calibrate.c what a hook costs
 *     selected.c  which functions are recorded                       jumps.c     longjmp and exceptions
 *
 * The program's own malloc may be instrumented, so events never allocate from it: memory comes from arenas. Signal
 * handlers that interrupt a hook are not recorded, which the thread's `busy` tells. Nothing of the program is changed. */
#ifndef PERFLAW_HOOKS_H
#define PERFLAW_HOOKS_H

#include "../arena.h"
#include "../clock.h"
#include "../cpu.h"
#include "../ring.h"
#include "../skips.h"

enum { LEFT_OUT = -1, CALIBRATION = 0 }; /* numbers of functions that readers never see, or drop */

/* An invocation that has not ended. */
typedef struct Open {
    const void *function;
    uintptr_t stack; /* where the stack stood at its hook: deeper calls lie below */
    int64_t frame;   /* its identity in the records */
    int32_t number;
    uint32_t size; /* of its code */
} Open;

/* What a thread knows of a function. */
typedef struct Known {
    const void *function;
    int64_t countdown; /* invocations left until the next candidate for the sample */
    Skips *skips;
    int32_t number;
    uint32_t size; /* of its code; INT32_MAX where it is not known */
} Known;

/* A thread of the target. Only it writes here, but for `next` and `free`. */
typedef struct Thread {
    Ring ring;
    Cpu cpu;
    Arena arena;
    Open *open;
    Known *known; /* by address, open addressing; capacity is a power of two */
    uint32_t height, room, capacity, used;
    uint32_t lost, foreign; /* events that found no room; that came from another stack than the thread's */
    volatile int busy;      /* within a hook: another that a signal handler calls is left out */
    int64_t frames, number;
    int64_t taken, last; /* ns that were ours and are left out of stamps; the stamp of the last event */
    uint64_t chance;
    uintptr_t low, high; /* bounds of its stack */
    struct Thread *next, *free; /* all of them; those whose ring waits for another thread */
} Thread;

typedef struct Hooks {
    volatile int state; /* of the process */
    int fake, recorder, selecting;
    uint64_t seed;
    char spool[2048], folder[2304];
    Clock clock;
    int64_t fake_now, enter_ns, exit_ns; /* what a hook costs beyond what lies between stamps */
    int64_t skip_ns;                     /* what both cost of a function that is not selected */
    int64_t threads;
    uint32_t rings;
    const char *lost; /* why the recording ended before the program */
} Hooks;
enum { UNKNOWN, RECORDING, FORKED, OVER };

extern Hooks hooks;
extern __thread Thread *current_thread __attribute__((tls_model("initial-exec")));

/* ---- process.c ---- */
/* Begin the recording of this process, or of a forked one, if it is to be recorded. 0 if not. */
int process_begin(void);
/* End it for good, the program goes on. */
void process_stop(const char *why);

/* ---- thread.c ---- */
/* The calling thread's state, begun if new; NULL if it cannot be recorded. */
Thread *thread_begin(void);
int thread_make_room(Thread *thread);
int thread_grow(Thread *thread);
Thread *threads_all(void);
int threads_start(void);
/* In a forked child: the other threads do not exist, and the rings are the parent's. Async-signal-safe. */
void threads_forget(void);

/* ---- known.c ---- */
/* What is known of a function; on first sight it gets its number. NULL if there is no memory. */
Known *known_find(Thread *thread, const void *function);
void known_forget_all(void);
/* Whether the function was met and is not recorded. */
int known_left_out(const Thread *thread, const void *function);
uint32_t known_unselected(void);
/* A candidate for the sample: its priority. -1 if there is no memory. */
int32_t known_draw(Thread *thread, Known *known);

/* ---- tell.c ---- */
void tell_process(void);
void tell_words(const char *topic, const char *words);
void tell_start(void);
void tell_end(void);
/* A function: the file that it is in and its place there. One that is not selected has number LEFT_OUT. */
void tell_function(int32_t number, const void *function);

/* ---- selected.c ---- */
/* Whether a function is to be recorded, and the size of its code where that is known. */
int selected(const void *function, uint32_t *size);
/* The file that code was loaded from, as the recorder finds it, and where; `room` may be used for its name. */
const char *module_of(const void *function, const void **base, char *room, size_t size);

/* ---- hooks.c, calibrate.c ---- */
void hooks_enter(Thread *thread, void *function, void *site, uintptr_t stack);
void hooks_exit(Thread *thread, void *function, void *site, void *returns, uintptr_t stack);
/* The stack stands at this address: invocations whose stack reached deeper are no more. */
void hooks_bury(Thread *thread, uintptr_t stack);
void calibrate(Thread *thread);

static inline void hooks_write(Thread *thread, int64_t value, int64_t frame, int32_t code, int32_t site, int32_t key, int32_t kind) {
    if (__builtin_expect(thread->ring.position == thread->ring.limit, 0) && !thread_make_room(thread)) {
        thread->lost++;
        return;
    }
    *ring_next(&thread->ring) = (Event){value, frame, code, site, key, kind};
    ring_publish(&thread->ring);
}

#endif
