#include "metrics.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/counter.h"
#include "definitions.h"
#include "settings.h"
#include "threads.h"
#include "vectors.h"

int metrics_wanted;
static ReadCounter reads[MAX_METRICS];

/* The last four are functions of native/meters. */
static const struct {
    const char *name, *unit;
    ReadCounter read;
    const char *symbol;
} built_in[] = {
    {"switches", "switches", counter_context_switches, NULL},
    {"faults", "faults", counter_page_faults, NULL},
    {"allocated_bytes", "bytes", NULL, "perflaw_allocated_bytes"},
    {"allocated_blocks", "blocks", NULL, "perflaw_allocated_blocks"},
    {"lock_wait", "ns", NULL, "perflaw_lock_wait_ns"},
    {"lock_hold", "ns", NULL, "perflaw_lock_hold_ns"},
};

static void add(const char *name, const char *unit, ReadCounter read, const char *reason) {
    if (read && metrics_wanted < MAX_METRICS) {
        define_metric(METRIC_MORE + metrics_wanted, name, unit);
        reads[metrics_wanted++] = read;
        return;
    }
    char text[512];
    snprintf(text, sizeof text, "%s is not measured: %s", name, read ? "there are too many" : reason);
    define_text("metrics", text);
}

static void add_plugin(char *line) {
    const char *name, *unit, *reason;
    ReadCounter read = counter_open_plugin(line, &name, &unit, &reason);
    add(name, unit, read, reason);
}

static void add_built_in(const char *name) {
    for (size_t at = 0; at < sizeof built_in / sizeof *built_in; at++)
        if (!strcmp(built_in[at].name, name)) {
            const char *symbol = built_in[at].symbol;
            ReadCounter read = symbol ? (ReadCounter)dlsym(RTLD_DEFAULT, symbol) : built_in[at].read;
            add(name, built_in[at].unit, read, "the library that counts it is not loaded");
        }
}

void metrics_start(void) {
    const char *wanted = setting("PERFLAW_TARGET_METRICS");
    char names[4096], *rest = names;
    metrics_wanted = 0;
    if (wanted && strlen(wanted) < sizeof names) {
        strcpy(names, wanted);
        for (char *line; rest && (line = strsep(&rest, "\n"));) {
            if (counter_is_plugin(line)) add_plugin(line);
            else add_built_in(line);
        }
    }
    define_mark(METRIC_MORE + metrics_wanted, "queued");
}

void metrics_begin_thread(Thread *thread) {
    for (int at = 0; at < metrics_wanted; at++) thread->metric_values[at] = reads[at]();
}

__attribute__((noinline)) void metrics_write(Thread *thread) {
    KEEP_VECTORS;
    for (int at = 0; at < metrics_wanted; at++) {
        int64_t value = reads[at](), increase = value - thread->metric_values[at];
        thread->metric_values[at] = value;
        if (increase) thread_write(thread, increase, 0, METRIC_MORE + at, -1, -1, EVENT_CHANGE);
    }
}

__attribute__((noinline)) int64_t metrics_write_off_cpu(Thread *thread, int64_t now) {
    KEEP_VECTORS;
    int64_t off = cpu_off_since(&thread->cpu, &recording.clock, thread->last_stamp + thread->overhead_ns, &now);
    if (!off) return now;
    thread_write(thread, off, 0, METRIC_CPU, -1, -1, EVENT_CHANGE);
    int64_t queued = cpu_queued(&thread->cpu, off);
    thread->queued_ns += queued;
    if (queued) thread_write(thread, queued, 0, METRIC_MORE + metrics_wanted, -1, -1, EVENT_CHANGE);
    return now;
}

Pause metrics_pause(Thread *thread) {
    Pause pause = metrics_pause_since(thread, clock_ns(&recording.clock));
    /* What it was off the CPU before is the program's: the reading at the end would swallow it. */
    if (cpu_may_be_off(&thread->cpu, pause.begun)) pause.begun = metrics_write_off_cpu(thread, pause.begun);
    return pause;
}

__attribute__((noinline)) int64_t metrics_go_on(Thread *thread, Pause pause) {
    KEEP_VECTORS;
    if (recording.fake_clock) return 0;
    int64_t now = clock_ns(&recording.clock);
    int64_t off = cpu_may_be_off(&thread->cpu, now) ? cpu_off_in_tracer(&thread->cpu, &recording.clock, &now) : 0;
    int64_t passed = now - pause.begun;
    if (off > passed) off = passed;
    thread->overhead_ns = pause.overhead_ns + passed; /* waiting for room in the ring has added itself, and is a part of it */
    thread->off_ns += off;
    return passed - (thread->off_ns - pause.off_ns);
}
