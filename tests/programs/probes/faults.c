/* Every system call that the probes make, number $FAIL of them and all after it, fails: the program goes on as if nothing were.
 * The counters are made here as well: one that is read by instruction, one by read. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int made_counter(struct perf_event_attr *asked);
#define PERFLAW_PERF_EVENT_OPEN(attributes) made_counter(attributes)
#define PERFLAW_RDPMC(number) (ticking += 7, (uint64_t)(number) * 0 + ticking)
static uint64_t ticking = 100;
#include <perflaw.h>

long syscall(long number, ...) {
    static int calls;
    long words[6], result;
    va_list list;
    va_start(list, number);
    for (int at = 0; at < 6; at++) words[at] = va_arg(list, long);
    va_end(list);
    const char *fail = getenv("FAIL");
    if (fail && ++calls >= atoi(fail)) {
        errno = ENOSPC;
        return -1;
    }
    register long r10 __asm__("r10") = words[3], r8 __asm__("r8") = words[4], r9 __asm__("r9") = words[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

/* A file that says 3, 8, 15, ... when read; with a page as the kernel's for the event 1. */
static int made_counter(struct perf_event_attr *asked) {
    int file = memfd_create("counter", 0);
    if (asked->type == PERF_TYPE_RAW && asked->config == 0x0101) {
        struct perf_event_mmap_page page;
        memset(&page, 0, sizeof page);
        page.cap_user_rdpmc = 1;
        page.index = 3;
        page.pmc_width = 48;
        page.offset = 1000;
        if (write(file, &page, sizeof page) < 0 || ftruncate(file, 4096)) abort();
        return file;
    }
    for (uint64_t at = 1; at < 100; at++) {
        uint64_t value = at * (at + 2);
        if (write(file, &value, 8) < 0) abort();
    }
    lseek(file, 0, SEEK_SET);
    return file;
}

int main(void) {
    SET_PERFCNTR(1, 1, 1);
    for (int at = 0; at < 4; at++) {
        PERFCNTR_PROBE_BEGIN(1, 1, 1);
        LLC_PROBE_BEGIN(2, 1);
        CNT_PROBE_BEGIN(3, 1);
        CNT_PROBE_END(3);
        LLC_PROBE_END(2);
        PERFCNTR_PROBE_END(1);
        PERFCNTR_PROBE_BEGIN(4, 1, 2);
        PERFCNTR_PROBE_END(4);
    }
    puts("done");
    return 0;
}
