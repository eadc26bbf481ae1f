/* The state of a recording inside the target, and who does what with it.
 *
 *     module.c      start, finish, advance          function.c   what is known of a code object
 *     process.c     one recording a process, fork   naming.c     its names, whether it is recorded
 *     thread.c      a ring and a stack a thread     sampling.c   which invocations have their features read
 *     event.h       the hot path                    define.c     lines of the definitions file
 *     monitoring.c, evaluation.c                    where events come from: Python 3.12 and later, 3.11
 *     branches*.c                                   which way branches went, where that is asked for
 *     lines_*.c                                     how often each line was executed, where that is asked for
 *
 * Nothing here raises into the target, runs its code or changes what it sees. All of it needs the GIL, but for
 * thread_end and process_forked. */
#ifndef PERFLAW_PYTHON_TRACER_H
#define PERFLAW_PYTHON_TRACER_H

#include "frames.h"

#include "../clock.h"
#include "../cpu.h"
#include "../ring.h"
#include "../skips.h"
#include "features.h"
#include "text.h"

enum Mode { SKIP, ALWAYS, FROM_OWN };
enum { MOST_METRICS = 16, MOST_COMPONENTS = 1 << 16 };

/* What is known of a code object. Freed with it. */
typedef struct Function {
    enum Mode mode;
    int own;            /* written by the person, not by a library */
    int32_t number;     /* of its component in this process's definitions, 0 before it has one */
    Skips *skips;       /* NULL before the first call */
    uint32_t process;   /* which process that was: a forked child defines anew */
    int64_t countdown;  /* ordinary calls left until one is looked at more closely (sampling.c); set to span */
    int64_t span;
    int64_t until_key;  /* ordinary calls until the next candidate for the sample, counted when one is looked at */
    int64_t gap;        /* how long to wait until looking again whether reading is cheap */
    int64_t reading_ns; /* spent on reading features so far */
    Program *program;
    struct Branches *branches; /* NULL where they are not counted (branches.h) */
    struct Lines *lines;       /* counters of its lines, NULL where they are not counted (lines_count.h); not owned */
    int watched;               /* which further events its code tells (enum Watch) */
    PyCodeObject *code; /* borrowed */
    char *name;
} Function;

/* A thread of the target: its ring and which recorded frames are open on it. */
typedef struct Thread {
    Ring ring;
    Frame **open;
    uint32_t height, room;
    uint32_t lost;    /* events that found no room */
    int64_t number;
    int64_t taken;    /* ns that were the tracer's own, left out of all stamps */
    int64_t last;     /* stamp of the last event: they never go back */
    uint64_t chance;  /* state of the random numbers */
    Cpu cpu;
    int64_t counted[MOST_METRICS]; /* value of each further metric when it was last told */
    struct Counting *counting; /* the innermost frame's branches, while they are seen one by one (branches_trace.c) */
    const struct Site *jump; /* the instruction before was this jump, where lines are counted (lines_trace.c) */
    struct Stacks *stacks; /* of greenlets (greenlets.c), NULL where there are none */
    char *floor, *ceiling; /* bounds of the C stack in use (stack.c) */
    struct Thread *next, *free; /* all of them; those whose ring waits for another thread */
} Thread;

/* What one event costs beyond what lies between two stamps, by calibration (calibrate.c). */
typedef struct Costs {
    int64_t enter_ns, exit_ns; /* of a recorded call: after its first stamp and before its last, and the rest */
    int64_t other_ns;          /* of an event that is not recorded */
    int64_t branch_ns;         /* of an event of a branch, or of an instruction that is looked at for one */
    int64_t line_ns;           /* of an event of a line */
} Costs;

typedef struct Settings {
    char *spool, *main, *own, *select, *exclude, *folder, *metrics;
    uint64_t seed;
    int fake, recorder, branches, lines;
    PyObject *all; /* the dict as given: what a child needs to be recorded */
} Settings;

typedef struct Recorder {
    int active;
    uint32_t process; /* 1, and one more after every fork */
    int forked;       /* in a child that has not begun its own recording yet */
    Settings settings;
    Clock clock;
    Costs costs;
    int64_t fake_now, started;
    char folder[3072];
    uint32_t components, rings;
    int64_t threads, missed, turns;
    const Thread *turn;          /* the thread that wrote the last event */
    int64_t library, unselected; /* functions seen and left out */
    Text left_out;               /* names of some of the latter */
    const char *lost; /* why the recording ended before the program did */
} Recorder;

extern Recorder recorder;
extern __thread Thread *current_thread __attribute__((tls_model("initial-exec")));

/* ---- process.c ---- */
/* finish: what the interpreter is to call at its end. 0 if this process cannot be recorded. */
int process_start(PyObject *settings, PyObject *finish);
/* The recording ends here, at the interpreter's end. */
void process_finish(void);
/* Say how the recording ends, which goes on if what was about to end it fails. */
void process_tell_end(const char *how);
void process_take_back_end(void);
/* End the recording for good, the target goes on. */
void process_stop(const char *why);
/* In a forked child: begin a recording of its own. 0 if that failed. */
int process_continue(void);

/* ---- thread.c ---- */
/* The calling thread's state, begun if new; NULL if it cannot be recorded. */
Thread *thread_begin(void);
int thread_make_room(Thread *thread);
int thread_grow(Thread *thread);
Thread *threads_all(void);
int threads_start(void);
/* In a forked child: the other threads do not exist, and the rings are the parent's. Async-signal-safe. */
void threads_forget(void);
static inline Thread *thread_get(void) { return current_thread ? current_thread : thread_begin(); }
/* Around what the tracer does for longer than an event: it is left out, and so is waiting for a CPU meanwhile. */
int64_t thread_pause(void);
void thread_take_out(int64_t since);

/* ---- function.c, naming.c, define.c ---- */
/* What is known of the function that a frame executes, classified on first sight; NULL if there is no memory. */
Function *function_find(Frame *frame);
Function *function_known(PyCodeObject *code);
typedef struct Extra {
    Py_ssize_t size;
    void *items[1];
} Extra;
extern Py_ssize_t function_place;
extern int function_is_direct;
static inline Function *function_of(Frame *frame) {
    const Extra *extra = frame_code(frame)->co_extra;
    if (function_is_direct && extra && extra->size > function_place && extra->items[function_place])
        return extra->items[function_place];
    return function_find(frame);
}
/* The same of a code object that runs nowhere yet: not classified. */
Function *function_of_code(PyCodeObject *code);
int function_start(void);
/* The number of its component, defined on first sight in this process; 0 if there are too many. */
int32_t function_define(Function *function);
void naming_classify(Function *function, Frame *frame);
int naming_start(void);
/* A number for what the interpreter does of its own, in this process. */
int32_t function_define_aside(const char *name);
/* Numbers of a function's features and of types by their names; *new says whether it was given just now. */
int32_t function_feature(const Function *function, const char *name, int *new);
int32_t function_type(const char *name, size_t length, int *new);
void function_forget_numbers(void);

/* Append lines to the definitions file. A disk that refuses ends the recording. */
void define_component(const Function *function, int32_t number);
void define_aside(int32_t number, const char *name);
void define_feature(const Function *function, int32_t number, const char *name);
void define_type(int32_t number, const char *name, size_t length);
void define_metric(int32_t number, const char *name, const char *unit);
void define_words(const char *topic, const char *words);
void define_process(void);
void define_start(void);
void define_end(const char *how);
/* (first offset, last offset, line) of a code object's bytecode, as co_lines(). */
void lines_of(PyCodeObject *code, Text *line);

/* ---- sampling.c ---- */
/* Look at a call closely, the countdown being over: its priority (-1: not sampled), and whether to read its features. */
int32_t sampling_enter(Thread *thread, Function *function, int *read);
void sampling_read(Thread *thread, Function *function, Frame *frame);

/* ---- monitoring.c or evaluation.c, calibrate.c, children.c, stack.c ---- */
const char *events_name(void);
enum { EVENTS_A_CALL = PY_VERSION_HEX < 0x030C0000 ? 1 : 2 }; /* of a function that is looked at and not recorded */
int events_start(void);
void events_stop(void);
void calibrate(void);
enum { CALIBRATE_TRIALS = 15 };
/* Median time of a run of a loop, of that many. */
int64_t calibrate_timed(PyObject *run, PyObject *called, PyObject *calls);
void children_start(void);

#endif
