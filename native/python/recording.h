/* The state of a recording inside a Python program.
 *
 *     module.c         start, finish, advance             functions.c    what is known of a code object
 *     process.c        one recording per process, forks   naming.c       its name, and whether it is recorded
 *     threads.c        a ring and open frames per thread  sampling.c     which invocations have their features read
 *     events.h         the hot path                       definitions.c  lines of the definitions file
 *     event_source.h   where events come from: monitoring.c on Python 3.12 and later, evaluation.c on 3.11
 *
 * Nothing here raises an exception into the program, runs its code or changes what it sees.
 *
 * Ownership: the one Recording belongs to the process, a Function to its code object, and a Thread lives as long as the
 * process. Threads: the caller holds the GIL unless a function says otherwise. */
#ifndef PERFLAW_PYTHON_RECORDING_H
#define PERFLAW_PYTHON_RECORDING_H

#include "python/interpreter/frames.h"

#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "core/base/ring.h"
#include "core/base/sampler.h"
#include "python/features/features.h"
#include "text.h"

/* Whether calls of a function are recorded. COUNTED: they are counted, and few are timed (budget.h). */
enum Mode { NEVER, ALWAYS, COUNTED };
enum { MAX_METRICS = 16, MAX_WAITS = 8, MAX_COMPONENTS = 1 << 16, MAX_EARLIER = 256 };

/* Which calls of library functions are recorded while a frame is the innermost recorded one: all; only those that the
 * frame makes itself, and nothing of libraries below them; none. So an import is one context, however much it runs. */
enum LibraryCalls { ALL_CALLS, OWN_CALLS, NO_CALLS };

/* What is known of a code object. It is freed with the code object. */
typedef struct Function {
    enum Mode mode;
    int origin;         /* whose it is (enum Origin) */
    int is_in_main;     /* defined in the main script */
    int is_own;         /* written by the person, not part of a library */
    int is_body;        /* code of a module or class, which runs when it is imported; 0 for the main script */
    int is_left_out_in_imports; /* a library function that is recorded by default (enum LibraryCalls) */
    int is_observed; /* each of its outermost invocations is an observation */
    uint32_t observation; /* the last one in which its features were read (sampling.h) */
    int may_be_counted; /* whether it is only counted if timing it costs too much; 0 once it has called others */
    int32_t leaf_calls; /* calls that were looked at and called nothing that is recorded, and their time; of late */
    int32_t until_timed; /* calls that are counted before one is timed again */
    int64_t leaf_ns;
    int32_t number;     /* of its component in this process's definitions; 0 until it is defined */
    Sampler *sampler;   /* NULL before the first call */
    uint32_t process;   /* the process that `number` is of: a forked child defines anew */
    int64_t countdown;  /* ordinary calls left until one is looked at more closely; it starts at the sampler's span */
    FeatureProgram *program;
    struct Branches *branches; /* NULL if they are not counted (branches.h) */
    struct Lines *lines;       /* counters of its lines, NULL if they are not counted (lines.h); not owned */
    int watched;               /* the further events that its code tells (enum Watch) */
    PyCodeObject *code;        /* borrowed */
    char *name;
    struct Function *next, **place; /* the list of all functions, and where this one hangs in it */
} Function;

/* A recorded frame that has not ended. */
typedef struct OpenFrame {
    Frame *frame;
    enum LibraryCalls library_calls;
} OpenFrame;

/* A thread of the program: its ring, and which recorded frames are open on it. */
typedef struct Thread {
    Ring ring;
    OpenFrame *open;
    uint32_t height, capacity;
    uint32_t observation, observed_height; /* number of the observation that is sampled, 0: none; height within it */
#if PY_VERSION_HEX < 0x030C0000
    /* Of the open frames the lowest that were entered before the recording, and their code: no event tells their end. */
    uint32_t earlier;
    const PyCodeObject *earlier_code[MAX_EARLIER];
#endif
    uint32_t lost_records; /* records that found no room in the ring */
    int64_t number;
    int64_t overhead_ns;   /* time spent by the tracer, which all stamps leave out */
    int32_t overhead_depth; /* sections of the tracer's own work that are open (stamps.h) */
    int64_t counting_ns; /* part of it, of all threads that had this state: the counting of lines */
    int64_t waited_ns, off_ns; /* parts of it: waiting for the recorder, and other time off the CPU */
    int64_t overhead_before, waited_before, off_before; /* these three when the thread began */
    int32_t until_measured; /* events left until the time of one is measured (costs.h) */
    int64_t last_stamp;    /* stamps never go back */
    Function *watched;     /* the function whose call is looked at (budget.h), NULL most of the time */
    const Frame *watched_frame;
    int64_t watched_stamp;
    uint64_t random_state;
    Cpu cpu;
    int64_t metric_values[MAX_METRICS]; /* each further metric when it was written last */
    int64_t waits[MAX_WAITS]; /* time in blocking functions when a time off the CPU was written last (waits.h) */
    struct Counting *counting;   /* counters of the innermost frame while its instructions are traced (branches_trace.c) */
    const struct Site *jump;     /* the jump that the instruction before was, if lines are counted (lines_trace.c) */
    int32_t raised_line, raised_offset; /* of an instruction that had lost its line and has just raised, else 0 */
    struct GreenletStacks *greenlets;    /* NULL if the thread has none (greenlets.c) */
    char *stack_low, *stack_high;        /* bounds of the C stack in use (stack.c) */
    uint32_t process;                    /* the recording that its ring is of */
    int is_ending;                       /* it writes its last record, without the GIL */
    struct Thread **current;             /* its own thread's current_thread; NULL once that thread has ended */
    struct Thread *next, *next_idle;     /* the list of all threads; the list of those whose ring waits for a new thread */
} Thread;

/* Mean time of a part of the tracer's handlers, over the last events that were measured (costs.h). */
typedef struct HandlerMean {
    int64_t count, fraction_ns; /* fraction_ns: in 1/256 ns */
} HandlerMean;

/* What the tracer costs the program at a recorded call, or each time that a generator goes on (costs.h). */
typedef struct PassCosts {
    int64_t enter_ns, exit_ns; /* between its two stamps, and the rest */
    int64_t inside_ns, outside_ns; /* the parts of these two outside of the handlers, by calibration */
    int64_t calibrated_fraction_ns; /* time of the handlers in the calibration, in 1/256 ns; 0 before it */
    HandlerMean before, after, leave; /* handlers: before the stamp of the beginning, after it, and at the end */
} PassCosts;

/* What the tracer costs the program beyond the time between two stamps (costs.h). */
typedef struct Costs {
    PassCosts call, resume; /* of a recorded call, and of a generator or coroutine that goes on until it yields */
    int64_t plain_ns;          /* what a call of a function that does nothing takes without the tracer */
    int64_t other_ns;          /* of an event that is not recorded */
    int64_t count_ns;          /* of a call that is only counted */
    int64_t branch_ns;         /* of an event of a branch, or of an instruction that is looked at for one */
    int64_t line_ns;           /* of an event of a line */
    /* Python 3.11: of each instruction of a line that is counted, which then is not specialised, and of each
     * invocation whose lines are counted */
    int64_t instruction_fraction_ns /* in 1/256 ns */, frame_ns;
    int64_t counted_fraction; /* time of counted code without counting, by what counting adds to it; in 1/256 */
} Costs;

typedef struct Settings {
    char *spool, *main, *own, *select, *exclude, *folder, *metrics;
    char *per; /* the function of which each invocation is an observation; empty: none */
    uint64_t seed;
    int64_t entered_ns; /* CPU time of the process before anything of the tracer was loaded */
    double budget; /* how many times as long as without the tracer the program may take; 0: as long as it likes */
    int fake_clock, recorder_pid, branches, lines, paths;
    int only_own; /* library functions are not recorded unless they are selected */
    int attached; /* the program ran already: its children are not recorded */
    PyObject *given; /* the dict as it was given; a child process needs it to be recorded */
} Settings;

typedef struct Recording {
    int active;
    uint32_t process; /* 1, and one more after every fork and every further start */
    int forked;       /* this is a forked child that has not begun its own recording yet */
    Settings settings;
    Clock clock;
    Costs costs;
    int64_t fake_now, started_ns;
    int64_t reading_ns; /* time spent on reading features so far */
    char folder[3072];
    uint32_t ring_count;
    int64_t thread_count, turn_count;
    uint32_t observations; /* how many were sampled */
    int64_t observing_ns;  /* time spent on reading features of calls within them so far */
    const Thread *last_writer;                     /* the thread that wrote the last event */
    int64_t unselected_functions; /* functions that were met and are not recorded */
    Text unselected_names;   /* names of some of them */
    Text earlier_names;      /* functions that were open when the recording began */
    const char *stop_reason; /* why the recording ended before the program did */
} Recording;

extern Recording recording;

/* Whether branches and lines of a function are counted: of one's own functions, and of those that are selected. */
static inline int function_counts_inside(const Function *function) {
    return function->mode == ALWAYS && (function->is_own || *recording.settings.select);
}
extern __thread Thread *current_thread __attribute__((tls_model("initial-exec")));

/* End the recording for good, for the first reason given; the program goes on. Any thread may call it. Cost: two
 * stores. */
void recording_stop(const char *reason);

#endif
