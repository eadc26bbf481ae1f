#include "metrics.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "definitions.h"
#include "threads.h"

typedef int64_t (*Read)(void);

int metrics_wanted;
static Read reads[MAX_METRICS];

static int64_t context_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static int64_t page_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* The last four are functions of native/meters. */
static const struct {
    const char *name, *unit;
    Read read;
    const char *symbol;
} built_in[] = {
    {"switches", "switches", context_switches, NULL},
    {"faults", "faults", page_faults, NULL},
    {"allocated_bytes", "bytes", NULL, "perflaw_allocated_bytes"},
    {"allocated_blocks", "blocks", NULL, "perflaw_allocated_blocks"},
    {"lock_wait", "ns", NULL, "perflaw_lock_wait_ns"},
    {"lock_hold", "ns", NULL, "perflaw_lock_hold_ns"},
};

static void add(const char *name, const char *unit, Read read) {
    if (!read || metrics_wanted == MAX_METRICS) {
        char text[256];
        const char *why = read ? "there are too many" : "the library that counts it is not loaded";
        snprintf(text, sizeof text, "%s is not measured: %s", name, why);
        define_text("metrics", text);
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
    char *path = strchr(unit, ':');
    if (!path) return;
    *path++ = 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    add(name, unit, library ? (Read)dlsym(library, symbol) : NULL);
}

static void add_built_in(const char *name) {
    for (size_t at = 0; at < sizeof built_in / sizeof *built_in; at++)
        if (!strcmp(built_in[at].name, name)) {
            const char *symbol = built_in[at].symbol;
            add(name, built_in[at].unit, symbol ? (Read)dlsym(RTLD_DEFAULT, symbol) : built_in[at].read);
        }
}

void metrics_start(void) {
    const char *wanted = getenv("PERFLAW_TARGET_METRICS");
    char names[4096], *rest = names;
    metrics_wanted = 0;
    if (wanted && strlen(wanted) < sizeof names) {
        strcpy(names, wanted);
        for (char *line; rest && (line = strsep(&rest, "\n"));) {
            if (!strncmp(line, "plugin:", 7)) add_plugin(line);
            else add_built_in(line);
        }
    }
    define_mark(METRIC_MORE + metrics_wanted, "queued");
}

void metrics_begin_thread(Thread *thread) {
    for (int at = 0; at < metrics_wanted; at++) thread->metric_values[at] = reads[at]();
}

void metrics_write(Thread *thread) {
    for (int at = 0; at < metrics_wanted; at++) {
        int64_t value = reads[at](), increase = value - thread->metric_values[at];
        thread->metric_values[at] = value;
        if (increase) thread_write(thread, increase, 0, METRIC_MORE + at, -1, -1, EVENT_CHANGE);
    }
}
