#include "stamps.h"

void thread_write_turn(Thread *thread) {
    recording.last_writer = thread;
    int32_t rings = (int32_t)recording.ring_count;
    thread_write(thread, thread->overhead_ns, ++recording.turn_count, rings, -1, -1, EVENT_TURN);
}

int64_t overhead_begin(void) {
    Thread *thread = current_thread;
    if (!thread) return 0;
    int64_t now = clock_ns(&recording.clock), overhead_ns = thread->overhead_ns;
    int outermost = !thread->overhead_depth++;
    if (outermost && cpu_may_be_off(&thread->cpu, now)) now = metrics_write_off_cpu(thread, now);
    return now - overhead_ns;
}

int64_t overhead_end(int64_t stamp) {
    Thread *thread = current_thread;
    if (!thread || !thread->overhead_depth) return 0;
    int64_t before = thread->overhead_ns;
    if (--thread->overhead_depth) thread->overhead_ns = clock_ns(&recording.clock) - stamp;
    else overhead_since(thread, stamp, 0);
    return thread->overhead_ns - before;
}

void overhead_since(Thread *thread, int64_t stamp, int64_t more_ns) {
    int64_t now = clock_ns(&recording.clock);
    /* All of it is the tracer's: also a switch within thread_stamp, after the CPU clock was read there. */
    if (cpu_may_be_off(&thread->cpu, now)) thread->off_ns += cpu_off_in_tracer(&thread->cpu, &recording.clock, &now);
    thread->overhead_ns = now - stamp + more_ns;
}
