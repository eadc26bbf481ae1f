#include "stamps.h"

void thread_write_turn(Thread *thread) {
    recording.last_writer = thread;
    thread_write(thread, thread->overhead_ns, ++recording.turn_count, 0, -1, -1, EVENT_TURN);
}

int64_t overhead_begin(void) {
    int64_t now = clock_ns(&recording.clock);
    if (current_thread && cpu_may_be_off(&current_thread->cpu, now)) metrics_write_off_cpu(current_thread, now);
    return now;
}

void overhead_end(int64_t begun) {
    if (!current_thread) return;
    int64_t now = clock_ns(&recording.clock);
    if (cpu_may_be_off(&current_thread->cpu, now)) cpu_off(&current_thread->cpu, &recording.clock);
    current_thread->overhead_ns += clock_ns(&recording.clock) - begun;
}
