#include "core/base/cpu.h"
#include "runner.h"

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

void test_cpu(Tally *tally) {
    off_the_cpu_is_what_the_clock_moved(tally);
    it_is_no_more_than_passed_since_the_last_event(tally);
    a_late_reading_is_moved_on(tally);
}
