#include "core/base/cpu.h"
#include "runner.h"

#include <time.h>

/* A thread that is off the CPU whenever the fake clock moves: what it spends on the real one is next to nothing. */
enum { SECOND = 1000000000, SPENT = 10000000 };

static void off_the_cpu_is_what_the_clock_moved(Tally *tally) {
    int64_t now = 5, read = 0;
    volatile uint64_t flag = 0; /* switched out */
    Clock clock = clock_fake(&now);
    Cpu cpu;
    cpu_start(&cpu, &clock);
    cpu.flag = &flag;
    now += SECOND;
    read = now;
    int64_t off = cpu_off_since(&cpu, &clock, 5, &read);
    CHECK(tally, off > SECOND - SPENT && off <= SECOND);
    CHECK(tally, read == now && flag == cpu_armed);
}

static void it_is_no_more_than_passed_since_the_last_event(Tally *tally) {
    int64_t now = 5, read = 0;
    volatile uint64_t flag = 0;
    Clock clock = clock_fake(&now);
    Cpu cpu;
    cpu_start(&cpu, &clock);
    cpu.flag = &flag;
    now += SECOND;
    read = now;
    CHECK(tally, cpu_off_since(&cpu, &clock, now - 300, &read) == 300);
    read = now;
    CHECK(tally, cpu_off_since(&cpu, &clock, now + 300, &read) == 0); /* the rest is not told later */
}

static void a_late_reading_is_moved_on(Tally *tally) {
    int64_t now = 5, read = 5;
    volatile uint64_t flag = 0;
    Clock clock = clock_fake(&now);
    Cpu cpu;
    cpu_start(&cpu, &clock);
    cpu.flag = &flag;
    now += SECOND;
    CHECK(tally, cpu_off_since(&cpu, &clock, 5, &read) > SECOND - SPENT);
    CHECK(tally, read == now);
}

static void pause_thread(void) {
    struct timespec pause = {.tv_nsec = 100000};
    nanosleep(&pause, NULL);
}

/* What the thread is off the CPU for is told by its switches since the last reading. */
enum { SHORT = CPU_QUEUED_NS / 2 };

static void a_thread_that_gave_up_the_cpu_waits(Tally *tally) {
    int64_t now = 5;
    Clock clock = clock_fake(&now);
    Cpu cpu;
    cpu_start(&cpu, &clock);
    CHECK(tally, cpu_queued(&cpu, SHORT) == SHORT);
    pause_thread();
    CHECK(tally, cpu_queued(&cpu, SHORT) == 0);
    CHECK(tally, cpu_queued(&cpu, SHORT) == SHORT);
}

static void pauses_of_the_tracer_are_not_taken_for_the_programs(Tally *tally) {
    int64_t now = 5, read = 0;
    Clock clock = clock_fake(&now);
    Cpu cpu;
    cpu_start(&cpu, &clock);
    pause_thread();
    cpu_leave_out(&cpu, 100000, 0);
    CHECK(tally, cpu_queued(&cpu, SHORT) == SHORT);
    pause_thread();
    read = now += SECOND;
    CHECK(tally, cpu_off_in_tracer(&cpu, &clock, &read) > 0 && cpu_queued(&cpu, SHORT) == SHORT);
    pause_thread();
    read = now += SECOND;
    CHECK(tally, cpu_off_since(&cpu, &clock, now + 1, &read) == 0 && cpu_queued(&cpu, SHORT) == SHORT);
}

void test_cpu(Tally *tally) {
    a_thread_that_gave_up_the_cpu_waits(tally);
    pauses_of_the_tracer_are_not_taken_for_the_programs(tally);
    off_the_cpu_is_what_the_clock_moved(tally);
    it_is_no_more_than_passed_since_the_last_event(tally);
    a_late_reading_is_moved_on(tally);
}
