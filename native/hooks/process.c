/* One recording a process: its beginning at the first event, its end, and what a fork makes of it. */
#include "hooks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int prepared;

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static void forked(void) {
    if (hooks.state == RECORDING) hooks.state = FORKED;
    pthread_mutex_init(&lock, NULL);
    threads_forget();
    known_forget_all();
}

/* Once a program: what the recorder asked for, in the environment. */
static int prepare(void) {
    const char *spool = setting("PERFLAW_TARGET_SPOOL");
    if (!*spool || strlen(spool) >= sizeof hooks.spool) return 0;
    strcpy(hooks.spool, spool);
    hooks.seed = strtoull(setting("PERFLAW_TARGET_SEED"), NULL, 10);
    hooks.recorder = atoi(setting("PERFLAW_TARGET_RECORDER"));
    hooks.selecting = *setting("PERFLAW_TARGET_SELECT") || *setting("PERFLAW_TARGET_EXCLUDE");
    hooks.fake = !strcmp(setting("PERFLAW_TARGET_CLOCK"), "fake");
    if (!threads_start() || pthread_atfork(NULL, NULL, forked)) return 0;
    return prepared = 1;
}

static int make_folder(void) {
    for (int number = 1; number < 1000; number++) {
        snprintf(hooks.folder, sizeof hooks.folder, "%s/%d-%d", hooks.spool, getpid(), number);
        if (!mkdir(hooks.folder, 0700)) return 1;
        if (errno != EEXIST) return 0;
    }
    return 0;
}

static void start_clock(void) {
    const char *clock = "fake: the program advances it";
    if (hooks.fake) hooks.clock = clock_fake(&hooks.fake_now);
    else if (hooks.state == UNKNOWN) clock = clock_start(&hooks.clock);
    else clock = "as its parent's";
    tell_words("clock", clock);
}

static int begin(void) {
    if (!prepared && !prepare()) return 0;
    if (hooks.state == FORKED) hooks.seed += (uint64_t)getpid() << 32;
    if (!make_folder()) return 0;
    hooks.rings = 0;
    hooks.threads = 0;
    tell_process();
    start_clock();
    return 1;
}

int process_begin(void) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    if (hooks.state == UNKNOWN || hooks.state == FORKED) hooks.state = begin() && hooks.state != OVER ? RECORDING : OVER;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return hooks.state == RECORDING;
}

void process_stop(const char *why) {
    hooks.state = OVER;
    if (!hooks.lost) hooks.lost = why;
}

__attribute__((destructor)) static void finish(void) {
    int begun = hooks.state == RECORDING || (hooks.lost && *hooks.folder);
    hooks.state = OVER; /* before the lines are written: a handler's hooks would wait for their lock */
    if (begun) tell_end();
}
