#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "branches.h"
#include "core/base/filters.h"
#include "definitions.h"
#include "features/dynamic_types.h"
#include "features/table.h"
#include "functions.h"
#include "inject/mirror.h"
#include "metrics.h"
#include "selection.h"
#include "settings.h"
#include "threads.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int prepared; /* the settings were read */

/* In the child of a fork, before anything of it runs. */
static void forked(void) {
    if (recording.state == RECORDING) recording_turn(FORKED);
    recording.entered_ns = 0;
    pthread_mutex_init(&lock, NULL);
    threads_forget();
    mirror_forget();
    functions_forget();
    table_forget();
    branches_forget();
    dynamic_types_forget();
}

/* The program is about to install a filter that would end it for what a recording does: all is written now, and nothing later. */
static void leave(const char *why) {
    if (!process_begin()) return;
    recording_stop(why);
    process_finish();
    *recording.folder = 0;
}

/* What is done once in the life of a process. */
static int watch(void) {
    static int watched;
    if (watched) return 1;
    if (!recording.is_attached) filters_watch(leave, 1);
    return watched = threads_start() && !pthread_atfork(NULL, NULL, forked);
}

int process_prepare(void) {
    if (prepared) return 1;
    const char *spool = setting("PERFLAW_TARGET_SPOOL");
    if (!*spool || strlen(spool) >= sizeof recording.spool) return 0;
    strcpy(recording.spool, spool);
    recording.seed = strtoull(setting("PERFLAW_TARGET_SEED"), NULL, 10);
    recording.recorder_pid = atoi(setting("PERFLAW_TARGET_RECORDER"));
    recording.has_selection =
        *setting("PERFLAW_TARGET_SELECT") || *setting("PERFLAW_TARGET_EXCLUDE") || *setting("PERFLAW_TARGET_PER");
    recording.fake_clock = !strcmp(setting("PERFLAW_TARGET_CLOCK"), "fake");
    return prepared = watch();
}

void process_forget(void) {
    functions_forget();
    selection_forget();
    tables_drop();
    table_forget();
    branches_forget();
    dynamic_types_forget();
    recording.stop_reason = NULL;
    *recording.folder = 0;
    prepared = 0;
}

static int make_folder(void) {
    for (int number = 1; number < 1000; number++) {
        snprintf(recording.folder, sizeof recording.folder, "%s/%d-%d", recording.spool, getpid(), number);
        if (!mkdir(recording.folder, 0700)) return 1;
        if (errno != EEXIST) return 0;
    }
    return 0;
}

static void start_clock(void) {
    const char *clock = "fake: the program advances it";
    if (recording.fake_clock) recording.clock = clock_fake(&recording.fake_now);
    else if (recording.state == NOT_BEGUN) clock = clock_start(&recording.clock);
    else clock = "as its parent's";
    define_text("clock", clock);
}

static int begin(void) {
    if (!process_prepare()) return 0;
    if (recording.state == FORKED) recording.seed += (uint64_t)getpid() << 32;
    recording.pid = getpid();
    if (!make_folder()) return 0;
    recording.ring_count = 0;
    recording.thread_count = 0;
    define_process();
    metrics_start();
    branches_start();
    start_clock();
    return 1;
}

int process_begin(void) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    if (recording.state == NOT_BEGUN || recording.state == FORKED) {
        recording.generation++;
        recording_turn(begin() && recording.state != ENDED ? RECORDING : ENDED);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return recording.state == RECORDING;
}

__attribute__((destructor)) void process_finish(void) {
    int begun = recording.state == RECORDING || (recording.stop_reason && *recording.folder);
    recording_turn(ENDED); /* before the lines are written: a handler's hooks would wait for their lock */
    if (!begun) return;
    branches_finish();
    Totals totals = {.unselected = functions_unselected()};
    for (const Thread *thread = threads_all(); thread; thread = thread->next) {
        if (thread->generation != recording.generation) continue;
        totals.overhead_ns += thread->overhead_ns;
        totals.off_ns += thread->off_ns;
        totals.lost_records += thread->lost_records;
        totals.foreign_events += thread->foreign_events;
    }
    define_end(&totals);
}
