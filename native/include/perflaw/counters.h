/* What the kernel and the processor count for a thread: page faults, context switches, hardware events. Begin reads, end
 * reads again and tells the difference. Where an event cannot be counted, the probe records nothing: the area says why, and
 * how often. */
#ifndef PERFLAW_COUNTERS_H
#define PERFLAW_COUNTERS_H

#include "write.h"

#if defined(__has_include) /* the kernel's headers are a package of their own in some systems */
#if __has_include(<linux/perf_event.h>)
#include <linux/perf_event.h>
#define PERFLAW_HAS_COUNTERS
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { PERFLAW_REFERENCES = PERFLAW_COUNTERS, PERFLAW_MISSES }; /* the LLC probes' own, after those of SET_PERFCNTR */

typedef struct perflaw_pair {
    uint64_t first, second;
    uint32_t on, counter; /* whether this execution is measured; which counter of SET_PERFCNTR */
} perflaw_pair;

#ifndef PERFLAW_PERF_EVENT_OPEN /* tests put another in its place, as they do with the instruction below */
#define PERFLAW_PERF_EVENT_OPEN(attributes) ((int)syscall(SYS_perf_event_open, attributes, 0L, -1L, -1L, 8L /* cloexec */))
#endif
#ifndef PERFLAW_RDPMC
#if defined(__x86_64__)
PERFLAW_HOT uint64_t perflaw_rdpmc(uint32_t counter) {
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
    return (uint64_t)high << 32 | low;
}
#define PERFLAW_RDPMC(counter) perflaw_rdpmc(counter)
#else
#define PERFLAW_RDPMC(counter) ((uint64_t)0 * (counter))
#endif
#endif

/* Keep the first reason in the area. */
PERFLAW_SLOW void perflaw_refuse(const char *why, int error) {
    perflaw_head *head = perflaw_process.head;
    if (!head || head->refusal[0]) return;
    perflaw_text text = {head->refusal, head->refusal + sizeof head->refusal - 1};
    perflaw_say(&text, why);
    if (!error) return;
    perflaw_say(&text, error == ENOENT || error == ENODEV || error == EOPNOTSUPP ? ": this machine has no such counter (errno "
                       : error == EACCES || error == EPERM ? ": not allowed, see kernel.perf_event_paranoid (errno "
                       : error == ENOSYS                   ? ": this kernel has no counters (errno "
                                                           : ": failed (errno ");
    perflaw_say_number(&text, (uint64_t)error);
    perflaw_say(&text, ")");
}

/* A descriptor where programs that close "theirs" and open others are not likely to put one of their own. */
PERFLAW_SLOW int perflaw_move_up(int file) {
    int moved = (int)syscall(SYS_fcntl, (long)file, 1030L /* F_DUPFD_CLOEXEC */, 512L);
    if (moved < 0) return file;
    perflaw_close(file);
    return moved;
}

#ifdef PERFLAW_HAS_COUNTERS
/* Open a counter of this thread: number, or one of the two of the LLC probes. */
PERFLAW_SLOW int perflaw_open_counter(perflaw_counter *counter, uint32_t number) {
    struct perf_event_attr asked;
    memset(&asked, 0, sizeof asked);
    asked.size = sizeof asked;
    asked.exclude_kernel = asked.exclude_hv = 1;
    if (number < PERFLAW_COUNTERS) {
        asked.type = PERF_TYPE_RAW;
        asked.config = perflaw_process.counters[number] & ~(1ull << 63);
        if (!perflaw_process.counters[number]) return perflaw_refuse("SET_PERFCNTR was not called for this counter", 0), 0;
    } else {
        asked.type = PERF_TYPE_HARDWARE;
        asked.config = number == PERFLAW_MISSES ? PERF_COUNT_HW_CACHE_MISSES : PERF_COUNT_HW_CACHE_REFERENCES;
    }
    int file = PERFLAW_PERF_EVENT_OPEN(&asked);
    if (file < 0) return perflaw_refuse("perf_event_open", errno), 0;
    counter->page = perflaw_map(4096, PROT_READ, MAP_SHARED, file, 0);
    counter->file = perflaw_move_up(file) + 1;
    return 1;
}

/* The count, by the instruction where the kernel allows that (its page says how, perf_event_open(2)), else by read. */
PERFLAW_SLOW int perflaw_read_counter(const perflaw_counter *counter, uint64_t *value) {
    const volatile struct perf_event_mmap_page *page = (const volatile struct perf_event_mmap_page *)counter->page;
    while (page && page->cap_user_rdpmc) {
        uint32_t lock = page->lock, index = page->index;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        int64_t count = page->offset;
        if (!index) break;
        uint32_t unused = 64u - page->pmc_width;
        count += (int64_t)(PERFLAW_RDPMC(index - 1) << unused) >> unused;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (page->lock == lock) return *value = (uint64_t)count, 1;
    }
    return syscall(SYS_read, (long)counter->file - 1, value, 8L) == 8;
}
#else
PERFLAW_SLOW int perflaw_open_counter(perflaw_counter *counter, uint32_t number) {
    (void)counter, (void)number;
    return perflaw_refuse("compiled without linux/perf_event.h", 0), 0;
}
PERFLAW_SLOW int perflaw_read_counter(const perflaw_counter *counter, uint64_t *value) {
    (void)counter, (void)value;
    return 0;
}
#endif

/* The value of counter `number` of this thread, which is opened if need be; 0 where it cannot be read. */
PERFLAW_SLOW int perflaw_count(perflaw_thread *self, uint32_t number, uint64_t *value) {
    perflaw_counter *counter = self->counters + number;
    if (!counter->file && !perflaw_open_counter(counter, number)) counter->file = -1;
    if (counter->file < 0) return 0;
    if (perflaw_read_counter(counter, value)) return 1;
    perflaw_refuse("a counter's descriptor was closed by the program", 0);
    return 0;
}

/* What a type of probe counts, now. */
PERFLAW_SLOW int perflaw_measure(uint32_t type, perflaw_pair *is) {
    struct rusage use;
    if (type == PERFLAW_FLT || type == PERFLAW_CTXSW) {
        if (syscall(SYS_getrusage, 1L /* RUSAGE_THREAD */, &use)) return 0;
        is->first = (uint64_t)(type == PERFLAW_FLT ? use.ru_minflt : use.ru_nvcsw);
        is->second = (uint64_t)(type == PERFLAW_FLT ? use.ru_majflt : use.ru_nivcsw);
        return 1;
    }
    perflaw_thread *self = perflaw_self && perflaw_self->home ? perflaw_self : perflaw_take_slowly();
    if (!self) return 0;
    if (type == PERFLAW_PERFCNTR) return perflaw_count(self, is->counter, &is->first);
    return perflaw_count(self, PERFLAW_REFERENCES, &is->first) && perflaw_count(self, PERFLAW_MISSES, &is->second);
}

PERFLAW_SLOW void perflaw_pair_begins(uint32_t id, uint32_t type, uint32_t every, perflaw_pair *is) {
    int error = errno;
    if (every > 1 && !perflaw_in_turn(id, every)) return;
    is->on = (uint32_t)perflaw_measure(type, is);
    perflaw_entry *entries = perflaw_process.entries;
    if (!is->on && entries && perflaw_process.head) __atomic_fetch_add(&entries[id].refused, 1u, __ATOMIC_RELAXED);
    errno = error;
}

PERFLAW_SLOW void perflaw_pair_ends(uint32_t id, uint32_t type, const perflaw_pair *began) {
    int error = errno;
    perflaw_pair is = *began;
    if (perflaw_measure(type, &is))
        perflaw_write(id, type, type == PERFLAW_PERFCNTR ? 1 : 2, perflaw_now(), is.first - began->first,
                      is.second - began->second);
    errno = error;
}

PERFLAW_HOT perflaw_pair perflaw_pair_begin(uint32_t id, uint32_t type, uint32_t said, uint32_t counter) {
    perflaw_pair is = {0, 0, 0, counter};
    uint64_t control = perflaw_control(id);
    if (PERFLAW_UNLIKELY(control & PERFLAW_ENABLED))
        perflaw_pair_begins(id, type, perflaw_every(id, type, said, control), &is);
    return is;
}

/* SET_PERFCNTR: the event's number and unit mask as the processor's manual gives them. Threads that have opened this
 * counter already go on with what it was. */
PERFLAW_SLOW void perflaw_set_counter(uint32_t number, uint64_t event, uint64_t mask) {
    if (number < PERFLAW_COUNTERS) perflaw_process.counters[number] = event | mask << 8 | 1ull << 63;
}

#ifdef __cplusplus
}
#endif
#endif
