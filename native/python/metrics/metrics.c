#include "metrics.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/counter.h"
#include "counters.h"
#include "python/definitions.h"
#include "python/threads.h"

int metrics_wanted;
static ReadCounter reads[MAX_METRICS]; /* by metric - METRIC_MORE; each gives the cumulative counter of the calling thread */

static struct BuiltIn {
    const char *name, *unit;
    ReadCounter read;
    int (*start)(void); /* gives 0 if this cannot be counted here; NULL if nothing needs to be started */
    void (*stop)(void);  /* NULL if nothing needs to be stopped */
    int is_started; /* it stays so in forked children */
} built_in[] = {
    {"allocated_bytes", "bytes", counters_allocated_bytes, counters_start_allocations, counters_stop_allocations, 0},
    {"allocated_blocks", "blocks", counters_allocated_blocks, counters_start_allocations, counters_stop_allocations, 0},
    {"gc", "ns", counters_collection_ns, counters_start_collections, NULL, 0},
    {"lock_wait", "ns", counters_lock_wait_ns, counters_start_locks, counters_stop_locks, 0},
    {"switches", "switches", counter_context_switches, NULL, NULL, 0},
    {"faults", "faults", counter_page_faults, NULL, NULL, 0},
};

/* ---- which are wanted ---- */

static void refuse(const char *name, const char *reason) {
    char text[512];
    snprintf(text, sizeof text, "%s is not measured: %s", name, reason);
    define_text("metrics", text);
}

static void add(const char *name, const char *unit, ReadCounter read) {
    if (metrics_wanted == MAX_METRICS) {
        refuse(name, "there are too many");
        return;
    }
    define_metric(METRIC_MORE + metrics_wanted, name, unit);
    reads[metrics_wanted++] = read;
}

static void add_plugin(char *line) {
    const char *name, *unit, *reason;
    ReadCounter read = counter_open_plugin(line, &name, &unit, &reason);
    if (read) add(name, unit, read);
    else refuse(name, reason);
}

static void add_built_in(const char *name) {
    for (size_t at = 0; at < sizeof built_in / sizeof *built_in; at++) {
        if (strcmp(built_in[at].name, name)) continue;
        struct BuiltIn *metric = &built_in[at];
        if (metric->start && !metric->is_started) metric->is_started = metric->start();
        if (!metric->start || metric->is_started) add(name, built_in[at].unit, built_in[at].read);
        else refuse(name, "this interpreter does not let it be counted");
    }
}

/* A fake clock stands still while the thread is off the CPU. */
static void define_marks(void) {
    if (recording.settings.fake_clock) return;
    define_mark(METRIC_MORE + metrics_wanted + MARK_QUEUED, "queued");
    for (int kind = 0; kind < WAITS_KINDS; kind++)
        define_mark(METRIC_MORE + metrics_wanted + MARK_WAITS + kind, waits_name(kind));
    define_text("off", "queued by schedstat and switches of the thread; waiting by the function that was called");
    waits_look();
}

void metrics_stop(void) {
    waits_stop(); /* first, as they are around what counts the waiting for locks */
    for (size_t at = 0; at < sizeof built_in / sizeof *built_in; at++) {
        if (built_in[at].is_started && built_in[at].stop) built_in[at].stop();
        built_in[at].is_started = 0;
    }
}

void metrics_start(void) {
    define_metric(METRIC_CPU, "cpu", "ns");
    metrics_wanted = 0;
    char *names = strdup(recording.settings.metrics), *rest = names;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        if (counter_is_plugin(line)) add_plugin(line);
        else add_built_in(line);
    }
    define_marks();
    free(names);
}

/* ---- writing ---- */

void metrics_begin_thread(Thread *thread) {
    const char *source = cpu_start(&thread->cpu, &recording.clock);
    if (recording.settings.fake_clock) cpu_ignore(&thread->cpu);
    if (thread->number == 1)
        define_text("cpu", recording.settings.fake_clock ? "as the fake clock: never waiting" : source);
    for (int at = 0; at < metrics_wanted; at++) thread->metric_values[at] = reads[at]();
    for (int kind = 0; kind < WAITS_KINDS; kind++) thread->waits[kind] = waits_ns(kind);
}

static void write_change(Thread *thread, int32_t metric, int64_t increase) {
    thread_write(thread, increase, 0, metric, -1, -1, EVENT_CHANGE);
}

/* What the thread was off the CPU for. */
static void write_marks(Thread *thread, int64_t off) {
    int32_t first = METRIC_MORE + metrics_wanted;
    int64_t queued = cpu_queued(&thread->cpu, off), left = off - queued;
    if (queued) write_change(thread, first + MARK_QUEUED, queued);
    for (int kind = 0; kind < WAITS_KINDS; kind++) {
        int64_t waited = waits_ns(kind), more = waited - thread->waits[kind];
        thread->waits[kind] = waited;
        if (more > left) more = left;
        if (more > 0) write_change(thread, first + MARK_WAITS + kind, more);
        left -= more;
    }
}

int64_t metrics_write_off_cpu(Thread *thread, int64_t now) {
    int64_t reported = thread->cpu.reported;
    int64_t off = cpu_off_since(&thread->cpu, &recording.clock, thread->last_stamp + thread->overhead_ns, &now);
    thread->off_ns += thread->cpu.reported - reported - off; /* before the last event's handler ended */
    if (off) {
        write_change(thread, METRIC_CPU, off);
        write_marks(thread, off);
    }
    return now;
}

void metrics_write_fake_off_cpu(Thread *thread, int64_t ns) { write_change(thread, METRIC_CPU, ns); }

void metrics_write(Thread *thread) {
    for (int at = 0; at < metrics_wanted; at++) {
        int64_t value = reads[at](), increase = value - thread->metric_values[at];
        thread->metric_values[at] = value;
        if (increase) write_change(thread, METRIC_MORE + at, increase);
    }
}
