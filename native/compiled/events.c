#include "events.h"

#include "branches.h"
#include "calibration.h"
#include "definitions.h"
#include "functions.h"
#include "invocations.h"
#include "metrics.h"
#include "process.h"
#include "threads.h"
#include "vectors.h"

static __thread int beginning __attribute__((tls_model("initial-exec")));

static Thread *create_thread(void) {
    if (recording.state != RECORDING && !process_begin()) return NULL;
    Thread *thread = thread_create();
    if (!thread || !functions_begin(thread)) return NULL;
    branches_drop(thread);
    const char *source = cpu_start(&thread->cpu, &recording.clock);
    if (recording.fake_clock) cpu_ignore(&thread->cpu);
    if (thread->number == 1) define_text("cpu", recording.fake_clock ? "as the fake clock: never waiting" : source);
    if (thread->number == 1) define_text("off", "queued by schedstat and switches of the thread; all else is waiting");
    thread_write(thread, thread->number, 0, 0, -1, -1, EVENT_THREAD);
    thread_watch_end(thread);
    metrics_begin_thread(thread);
    thread->switched = thread->cpu.flag ? thread->cpu.flag : &cpu_armed;
    thread->quick_gap = recording.clock.kind == CLOCK_TSC && !metrics_wanted && !branches_wanted ? (uint64_t)thread->cpu.gap : 0;
    if (recording.is_attached) invocations_open_earlier(thread);
    thread->generation = recording.generation;
    return current_thread = thread;
}

Thread *begin_thread(void) {
    KEEP_VECTORS;
    Interruptions before;
    if (beginning) return NULL; /* this is an instrumented malloc, called by what begins the recording */
    signals_hold(&before);
    beginning = 1;
    if (!recording.entered_ns) recording.entered_ns = cpu_of_process_ns();
    threads_count_beginning(1);
    Thread *thread = recording.state < ENDED ? create_thread() : NULL;
    if (thread && thread->number == 1 && !recording.fake_clock) calibrate(thread);
    if (thread && thread->number == 1) define_start();
    if (thread && thread->number == 1 && !recording.is_attached) define_cpu("tracer_start", cpu_of_process_ns() - recording.entered_ns);
    threads_count_beginning(-1);
    beginning = 0;
    signals_release(&before);
    return thread;
}
