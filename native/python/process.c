#include "process.h"

#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "definitions.h"
#include "python/counts/lines.h"
#include "python/metrics/collections.h"
#include "python/metrics/metrics.h"
#include "numbers.h"
#include "python/interpreter/stack.h"
#include "threads.h"

/* ---- settings ---- */

static char *setting(PyObject *settings, const char *name) {
    PyObject *item = PyDict_GetItemString(settings, name);
    const char *value = item ? PyUnicode_AsUTF8(item) : NULL;
    PyErr_Clear();
    return strdup(value ? value : "");
}

void process_read_settings(PyObject *given) {
    recording.process++;
    Settings *settings = &recording.settings;
    char *before[] = {settings->spool, settings->main, settings->own, settings->select, settings->exclude, settings->folder,
                      settings->metrics, settings->per};
    for (size_t at = 0; at < sizeof before / sizeof *before; at++) free(before[at]);
    Py_XDECREF(settings->given);
    settings->spool = setting(given, "PERFLAW_TARGET_SPOOL");
    settings->main = setting(given, "PERFLAW_TARGET_MAIN");
    settings->own = setting(given, "PERFLAW_TARGET_OWN");
    settings->select = setting(given, "PERFLAW_TARGET_SELECT");
    settings->exclude = setting(given, "PERFLAW_TARGET_EXCLUDE");
    settings->folder = setting(given, "PERFLAW_TARGET_FOLDER");
    settings->metrics = setting(given, "PERFLAW_TARGET_METRICS");
    settings->per = setting(given, "PERFLAW_TARGET_PER");
    char *clock = setting(given, "PERFLAW_TARGET_CLOCK"), *seed = setting(given, "PERFLAW_TARGET_SEED");
    char *pid = setting(given, "PERFLAW_TARGET_RECORDER"), *entered = setting(given, "PERFLAW_TARGET_ENTERED_NS");
    char *collect = setting(given, "PERFLAW_TARGET_COLLECT");
    settings->fake_clock = !strcmp(clock, "fake");
    settings->branches = strstr(collect, "branches") != NULL;
    settings->lines = strstr(collect, "lines") != NULL;
    settings->paths = strstr(collect, "paths") != NULL;
    char *only_own = setting(given, "PERFLAW_TARGET_ONLY_OWN");
    settings->only_own = *only_own != 0;
    free(only_own);
    char *lock = setting(given, "PERFLAW_TARGET_LOCK");
    settings->attached = *lock != 0;
    free(lock);
    char *budget = setting(given, "PERFLAW_TARGET_BUDGET");
    settings->budget = PyOS_string_to_double(*budget ? budget : "0", NULL, NULL);
    PyErr_Clear();
    settings->seed = strtoull(seed, NULL, 10);
    settings->recorder_pid = atoi(pid);
    settings->entered_ns = atoll(entered);
    settings->given = Py_NewRef(given);
    free(clock);
    free(collect);
    free(budget);
    free(seed);
    free(pid);
    free(entered);
}

void process_forget(void) {
    numbers_forget();
    text_free(&recording.unselected_names);
    text_free(&recording.earlier_names);
    recording.unselected_functions = recording.fake_now = recording.turn_count = recording.observing_ns = 0;
    recording.last_writer = NULL;
    recording.stop_reason = NULL;
    recording.forked = 0;
}

/* ---- beginning ---- */

const char *process_start_clock(void) {
    if (!recording.settings.fake_clock) return clock_start(&recording.clock);
    recording.clock = clock_fake(&recording.fake_now);
    return "fake: the program advances it";
}

static int make_folder(void) {
    for (int number = 1; number < 1000; number++) {
        snprintf(recording.folder, sizeof recording.folder, "%s/%d-%d", recording.settings.spool, getpid(), number);
        if (!mkdir(recording.folder, 0700)) return 1;
        if (errno != EEXIST) return 0;
    }
    return 0;
}

/* Interpreters of this process that there are now, and that were made so far; ours is counted by both. */
static int64_t living_interpreters(void) {
    int64_t count = 0;
    for (PyInterpreterState *each = PyInterpreterState_Head(); each; each = PyInterpreterState_Next(each)) count++;
    return count;
}

static int64_t made_interpreters(void) { return _PyRuntime.interpreters.next_id; }

static int64_t earlier_interpreters; /* that had ended before the recording began, and ours */

static int begin(void) {
    earlier_interpreters = made_interpreters() - living_interpreters() + 1;
    recording.active = make_folder();
    if (!recording.active) return 0;
    recording.ring_count = 0;
    recording.thread_count = 0;
    define_process();
    lines_begin();
    metrics_start();
    collections_forget();
    recording.started_ns = clock_ns(&recording.clock);
    recording.reading_ns = 0;
    return recording.active;
}

/* In the child of a fork, before anything of it runs. Async-signal-safe. */
static void forked(void) {
    if (!recording.process) return;
    recording.forked = 1;
    lines_stop();
    threads_forget();
}

int process_begin(void) {
    if (!threads_start() || !begin()) return 0;
    static int is_told_of_forks;
    if (!is_told_of_forks++) pthread_atfork(NULL, NULL, forked);
    return thread_get() != NULL; /* NULL: there is no room for records */
}

static void (*let_go_of_child)(void);

void process_leave_children(void (*let_go)(void)) { let_go_of_child = let_go; }

/* In a forked child: begin a recording of its own. 0 if that failed. The children of a program that was attached to are
 * left alone. */
static int begin_after_fork(void) {
    recording.forked = 0;
    if (recording.settings.attached) let_go_of_child();
    if (recording.settings.attached || recording.stop_reason) return 0;
    recording.process++;
    recording.unselected_functions = 0;
    recording.settings.seed += (uint64_t)getpid() << 32;
    numbers_forget();
    if (!begin()) return 0;
    define_start();
    return 1;
}

Thread *thread_begin(void) {
    if (!recording.active || (recording.forked && !begin_after_fork())) return NULL;
    Thread *thread = thread_create();
    if (!thread) return NULL;
    stack_find_bounds(thread);
    metrics_begin_thread(thread);
    thread_write(thread, thread->number, 0, 0, -1, -1, EVENT_THREAD);
    thread_watch_end(thread);
    return current_thread = thread;
}

/* ---- end ---- */

int process_write_end(const char *how) {
    int64_t lost_records = 0, overhead_ns = 0, off_ns = 0, counting_ns = 0;
    if (!recording.process || recording.forked || !(recording.active || recording.stop_reason)) return 0;
    for (const Thread *thread = threads_all(); thread; thread = thread->next) {
        if (thread->process != recording.process) continue;
        lost_records += thread->lost_records;
        overhead_ns += thread->overhead_ns;
        off_ns += thread->waited_ns + thread->off_ns;
        counting_ns += thread->counting_ns;
    }
    char count[24];
    snprintf(count, sizeof count, "%lld", (long long)recording.thread_count);
    define_text("threads", count);
    snprintf(count, sizeof count, "%lld", (long long)(made_interpreters() - earlier_interpreters));
    define_text("subinterpreters", count);
    collections_define();
    define_cpu("call", recording.costs.plain_ns);
    define_cpu("waited", off_ns);
    define_cpu("counting", counting_ns);
    define_cpu("counted", counting_ns * recording.costs.counted_fraction >> 8);
    define_end(overhead_ns, lost_records, how);
    return 1;
}

void process_take_back_end(void) {
    if (recording.process && !recording.forked && recording.active) define_text("end", "");
}
