#include "event.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "collections.h"
#include "counters.h"

typedef int64_t (*Read)(void);

int metrics_wanted;
static Read reads[MOST_METRICS]; /* by metric - METRIC_MORE; each the cumulative counter of the calling thread */
static int started;

/* ---- what the kernel counts: one system call for both, where both are asked for ---- */

static int64_t switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static int64_t faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static const struct Known {
    const char *name, *unit;
    Read read;
    int (*start)(void); /* 0 if it cannot be counted here */
} known[] = {
    {"allocated_bytes", "bytes", counters_bytes, counters_start_allocations},
    {"allocated_blocks", "blocks", counters_blocks, counters_start_allocations},
    {"gc", "ns", collections_ns, collections_start},
    {"lock_wait", "ns", counters_lock_wait, counters_start_locks},
    {"switches", "switches", switches, NULL},
    {"faults", "faults", faults, NULL},
};

/* ---- which are wanted ---- */

static void refuse(const char *name, const char *why) {
    char words[512];
    snprintf(words, sizeof words, "%s is not measured: %s", name, why);
    define_words("metrics", words);
}

static void add(const char *name, const char *unit, Read read) {
    if (metrics_wanted == MOST_METRICS) {
        refuse(name, "there are too many");
        return;
    }
    define_metric(METRIC_MORE + metrics_wanted, name, unit);
    reads[metrics_wanted++] = read;
}

/* plugin:NAME:UNIT:LIBRARY:SYMBOL; the path of the library may hold colons. */
static void add_plugin(char *line) {
    char *name = line + strlen("plugin:"), *unit = strchr(name, ':'), *symbol = strrchr(name, ':');
    if (!unit || unit == symbol) return;
    *unit++ = *symbol++ = 0;
    char *library = strchr(unit, ':');
    if (!library) return;
    *library++ = 0;
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    Read read = loaded ? (Read)dlsym(loaded, symbol) : NULL;
    if (read) add(name, unit, read);
    else refuse(name, dlerror());
}

static void add_known(const char *name) {
    for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
        if (strcmp(known[at].name, name)) continue;
        if (!known[at].start || started || known[at].start()) add(name, known[at].unit, known[at].read);
        else refuse(name, "this interpreter does not let it be counted");
    }
}

void metrics_start(void) {
    define_metric(METRIC_CPU, "cpu", "ns");
    metrics_wanted = 0;
    char *names = strdup(recorder.settings.metrics), *rest = names;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        if (!strncmp(line, "plugin:", 7)) add_plugin(line);
        else add_known(line);
    }
    started = 1; /* a forked child has its counters already */
    free(names);
}

/* ---- telling ---- */

void metrics_begin(Thread *thread) {
    const char *how = cpu_start(&thread->cpu, &recorder.clock);
    if (recorder.settings.fake) thread->cpu.flag = (volatile uint64_t *)&cpu_armed; /* never off the CPU */
    if (thread->number == 1) define_words("cpu", recorder.settings.fake ? "as the fake clock: never waiting" : how);
    for (int at = 0; at < metrics_wanted; at++) thread->counted[at] = reads[at]();
}

static void tell(Thread *thread, int32_t metric, int64_t more) {
    event_write(thread, more, 0, metric, -1, -1, EVENT_CHANGE);
}

int64_t metrics_tell_cpu(Thread *thread, int64_t now) {
    int64_t off = cpu_off_since(&thread->cpu, &recorder.clock, thread->last + thread->taken, &now);
    if (off) tell(thread, METRIC_CPU, off);
    return now;
}

void metrics_tell_off(Thread *thread, int64_t ns) { tell(thread, METRIC_CPU, ns); }

void metrics_tell(Thread *thread) {
    for (int at = 0; at < metrics_wanted; at++) {
        int64_t value = reads[at](), more = value - thread->counted[at];
        thread->counted[at] = value;
        if (more) tell(thread, METRIC_MORE + at, more);
    }
}
