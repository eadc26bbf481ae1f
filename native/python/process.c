/* One recording a process: its beginning and end, and what a fork makes of it. */
#include "branches.h"
#include "collections.h"
#include "event.h"
#include "lines_count.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Recorder recorder;

/* ---- settings ---- */

static char *setting(PyObject *settings, const char *name) {
    PyObject *found = PyDict_GetItemString(settings, name);
    const char *value = found ? PyUnicode_AsUTF8(found) : NULL;
    PyErr_Clear();
    return strdup(value ? value : "");
}

static void read_settings(PyObject *given) {
    Settings *settings = &recorder.settings;
    settings->spool = setting(given, "PERFLAW_TARGET_SPOOL");
    settings->main = setting(given, "PERFLAW_TARGET_MAIN");
    settings->own = setting(given, "PERFLAW_TARGET_OWN");
    settings->select = setting(given, "PERFLAW_TARGET_SELECT");
    settings->exclude = setting(given, "PERFLAW_TARGET_EXCLUDE");
    settings->folder = setting(given, "PERFLAW_TARGET_FOLDER");
    settings->metrics = setting(given, "PERFLAW_TARGET_METRICS");
    char *clock = setting(given, "PERFLAW_TARGET_CLOCK"), *seed = setting(given, "PERFLAW_TARGET_SEED");
    char *pid = setting(given, "PERFLAW_TARGET_RECORDER");
    char *collect = setting(given, "PERFLAW_TARGET_COLLECT");
    settings->fake = !strcmp(clock, "fake");
    settings->branches = strstr(collect, "branches") != NULL;
    settings->lines = strstr(collect, "lines") != NULL;
    settings->seed = strtoull(seed, NULL, 10);
    settings->recorder = atoi(pid);
    settings->all = Py_NewRef(given);
    free(clock);
    free(collect);
    free(seed);
    free(pid);
}

/* ---- the folder of this process ---- */

static int make_folder(void) {
    for (int number = 1; number < 1000; number++) {
        snprintf(recorder.folder, sizeof recorder.folder, "%s/%d-%d", recorder.settings.spool, getpid(), number);
        if (!mkdir(recorder.folder, 0700)) return 1;
        if (errno != EEXIST) return 0;
    }
    return 0;
}

static int begin(void) {
    recorder.active = make_folder();
    if (!recorder.active) return 0;
    recorder.rings = 0;
    recorder.threads = 0;
    define_process();
    lines_begin();
    metrics_start();
    recorder.started = clock_ns(&recorder.clock);
    return recorder.active;
}

/* ---- fork ---- */

static void forked(void) {
    if (!recorder.process) return;
    recorder.forked = 1;
    lines_forget();
    threads_forget();
}

int process_continue(void) {
    recorder.forked = 0;
    if (recorder.lost) return 0;
    recorder.process++;
    recorder.library = recorder.unselected = recorder.missed = 0;
    recorder.settings.seed += (uint64_t)getpid() << 32;
    function_forget_numbers();
    if (!begin()) return 0;
    define_start();
    return 1;
}

/* ---- beginning and end ---- */

static int call_at_exit(PyObject *finish) {
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *done = atexit ? PyObject_CallMethod(atexit, "register", "O", finish) : NULL;
    Py_XDECREF(atexit);
    Py_XDECREF(done);
    PyErr_Clear();
    return done != NULL;
}

int process_start(PyObject *settings, PyObject *finish) {
    recorder.process = 1;
    read_settings(settings);
    const char *clock = "fake: the program advances it";
    if (recorder.settings.fake) recorder.clock = clock_fake(&recorder.fake_now);
    else clock = clock_start(&recorder.clock);
    if (!function_start() || !naming_start() || !threads_start() || !begin()) return 0;
    pthread_atfork(NULL, NULL, forked);
    if (!thread_get()) return 0; /* no room for records */
    collections_start();
    branches_start();
    if (!recorder.settings.fake) calibrate();
    define_words("clock", clock);
    define_start();
    return recorder.active && call_at_exit(finish) && events_start();
}

void process_stop(const char *why) {
    recorder.active = 0;
    if (!recorder.lost) recorder.lost = why;
}

void process_tell_end(const char *how) {
    int64_t lost = 0;
    if (!recorder.process || recorder.forked || !(recorder.active || recorder.lost)) return;
    for (const Thread *thread = threads_all(); thread; thread = thread->next) lost += thread->lost;
    recorder.missed = lost;
    char count[24];
    snprintf(count, sizeof count, "%lld", (long long)recorder.threads);
    define_words("threads", count);
    define_end(how);
}

void process_take_back_end(void) {
    if (recorder.process && !recorder.forked && recorder.active) define_words("end", "");
}

void process_finish(void) {
    process_tell_end("");
    recorder.active = 0;
    lines_forget();
    collections_stop();
    events_stop();
}
