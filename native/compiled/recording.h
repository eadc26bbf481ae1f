/* The state of a recording inside a compiled program: its hooks of -finstrument-functions (gcc and clang) call a library
 * that is preloaded, or that library has injected code into it.
 *
 *     hooks.c        the hooks                                        process.c      one recording per process, and forks
 *     invocations.c  which invocations are open                       jumps.c        longjmp and exceptions
 *     functions.c    what each thread knows of a function             selection.c    which functions are recorded
 *     threads.c      a ring and an invocation stack per thread        definitions.c  lines of the definitions file
 *     calibration.c  what an event costs                             entry.c        the entry hook, which keeps the registers
 *     questions.c    what only the recorder knows                    features/      what the arguments are
 *     quick.h        the usual case of an event
 *     metrics.c      further metrics                                 inject/        code put into unmodified programs
 *     silence.c      hooks of functions that are not selected
 *     events.c       the beginning of every event                    vectors.c      registers that events leave alone
 *     settings.c     what the recorder asks for                       branches.c     which way branches went
 *
 * The program's own malloc may be instrumented, so an event never allocates from it: memory comes from arenas. A hook
 * that a signal handler calls while it interrupts another hook is not recorded. Of the program
 * only calls of hooks that are of no use are changed (silence.h), and what code is injected into.
 *
 * Ownership: the one Recording belongs to the process, a Thread to its arena. Threads: only its own thread writes to
 * a Thread, except for `next` and `next_idle`, which a lock protects. */
#ifndef PERFLAW_COMPILED_RECORDING_H
#define PERFLAW_COMPILED_RECORDING_H

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "core/base/ring.h"
#include "core/base/sampler.h"

/* Numbers of functions that readers never see (NOT_SELECTED) or drop (CALIBRATION). */
enum { NOT_SELECTED = -1, CALIBRATION = 0 };
enum { MAX_METRICS = 16 };

/* The bit of an invocation's stack that says that what it returns is to be read. */
#define IS_READ_AT_END ((uintptr_t)1)

/* What stands for a function: its address, and in the bits above which of the files it belongs to that lay at this place one
 * after another. Nearly always that is the first one, and these bits are 0. */
enum { ADDRESS_BITS = 48, MAX_FILES_AT_A_PLACE = 1 << 16 };
static inline const void *function_address(const void *function) {
    return (const void *)((uintptr_t)function << (64 - ADDRESS_BITS) >> (64 - ADDRESS_BITS));
}

/* An invocation that has not ended. */
typedef struct OpenInvocation {
    const void *function; /* what stands for it */
    uintptr_t stack; /* where the stack stood at its hook; deeper calls lie below. With the bit IS_READ_AT_END if set */
    int64_t frame;   /* its identity in the records */
    int32_t number;
    uint32_t size; /* of the function's code, in bytes */
    uint32_t skipped; /* the thread's, when it began */
} OpenInvocation;

/* What a thread knows of a function. */
typedef struct KnownFunction {
    const void *function;
    int64_t countdown; /* invocations until one is looked at more closely; it starts at the sampler's span */
    Sampler *sampler;  /* NULL before the first look */
    int32_t number;
    uint32_t size : 31;       /* of its code, in bytes; INT32_MAX if it is not known */
    uint32_t is_observed : 1; /* each of its outermost invocations is an observation */
} KnownFunction;

/* A call of the entry hook, known by where it returns to, and what is read there; NULL if nothing is. */
typedef struct KnownCall {
    const void *returns;
    const struct CallProgram *program;
} KnownCall;

/* A thread of the program. What the usual event needs comes first and lies side by side. */
typedef struct Thread {
    volatile int busy; /* the thread is inside a hook: one that a signal handler calls is left out */
    uint32_t function_capacity;
    uintptr_t mirrored, mirrored_span; /* the stack has a mirror from here up (inject/mirror.h), for so many bytes */
    KnownFunction *functions;          /* a hash table by address, with open addressing; the capacity is a power of two */
    OpenInvocation *top;               /* the innermost open invocation, or `bottom` */
    OpenInvocation *top_end;           /* there is room for open invocations up to this one */
    const volatile uint64_t *switched; /* holds cpu_armed as long as the thread was not switched out */
    uint64_t quick_gap; /* ns since the last event, up to which an event needs no more than a stamp (quick.h); 0: it always does */
    int64_t overhead_ns, last_stamp; /* time spent by the hooks, which stamps leave out; the stamp of the last event */
    int64_t last_frame;
    uint32_t generation; /* the recording that the thread takes part in; 0: none yet */
    uint32_t skipped;    /* calls of hooks, so far, for functions that are not selected; it may overflow */
    Ring ring;
    Cpu cpu;
    uintptr_t stack_low, stack_high;
    OpenInvocation *bottom; /* none of the thread's: the first of two entries that stand above the whole stack */
    KnownCall *calls;       /* like `functions`, by the address that the hook returns to */
    struct Reading *reading; /* what reading features needs, NULL before the first reading */
    struct Counting *counting; /* the innermost invocation whose branches are counted; NULL: none */
    uint32_t function_count, call_capacity, call_count;
    uint32_t lost_records;   /* records that found no room in the ring */
    uint32_t foreign_events; /* events on another stack than the thread's own */
    int64_t number;
    int64_t metric_values[MAX_METRICS]; /* what was written of each further metric */
    int64_t off_ns;                 /* part of the overhead: waiting for the recorder or for a CPU */
    int64_t queued_ns;              /* others had the CPU, outside of the overhead */
    int64_t started_ns, reading_ns; /* the clock when the thread began; time spent on reading features since */
    int64_t observed_frame, observing_ns; /* the observation that is sampled; time spent on reading calls within such */
    int64_t observed_height;              /* of open invocations, that one included; 0 if there is none */
    int is_first;                         /* what is read now is read because it is the first call within an observation */
    uint64_t random_state;
    struct Thread *next, *next_idle; /* the list of all threads; the list of those whose ring waits for a new thread */
    Arena arena;
} Thread;

enum State { NOT_BEGUN, RECORDING, FORKED, ENDED };
enum { NO_GENERATION = UINT32_MAX };

/* Calls within an invocation of functions that are not selected, whose two hooks were called. */
static inline int32_t skipped_within(const Thread *thread, const OpenInvocation *open) {
    uint32_t calls = (thread->skipped - open->skipped + 1) / 2;
    return calls < INT32_MAX ? (int32_t)calls : INT32_MAX;
}

typedef struct Recording {
    volatile int state;         /* enum State of this process */
    volatile uint32_t active;   /* the generation while the state is RECORDING, else NO_GENERATION */
    uint32_t generation;        /* number of the recording in this process */
    int fake_clock, pid, recorder_pid, has_selection;
    int is_attached; /* the program runs already */
    int by_frida;    /* Frida tells where functions begin */
    uint64_t seed;
    char spool[2048], folder[2304];
    Clock clock;
    int64_t fake_now;
    int64_t enter_ns, exit_ns; /* cost of a hook beyond what lies between the two stamps of a call */
    int64_t entered_ns;        /* CPU time of the process when this library began to do something; 0 until then */
    int64_t skip_ns;           /* cost of both hooks of a function that is not selected */
    int64_t thread_count;
    uint32_t ring_count;
    void (*empty)(void);     /* an injected function that does nothing; NULL if nothing is injected */
    long (*around_body)(long); /* calibration_body as an injected function, recorded as that one; NULL likewise */
    const void *calibrated;  /* the function whose calls calibration makes; NULL outside of it */
    void (*rest)(void);      /* has injected functions do nothing any more but go on; NULL if nothing is injected */
    const char *stop_reason; /* why the recording ended before the program did */
} Recording;

extern Recording recording;
extern __thread Thread *current_thread __attribute__((tls_model("initial-exec")));

/* Change the state. */
void recording_turn(enum State state);
/* End the recording for good, for the first reason given; the program goes on. Any thread may call it. Cost: two
 * stores. */
void recording_stop(const char *reason);

#endif
