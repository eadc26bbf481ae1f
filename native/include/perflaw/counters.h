/* What the kernel and the processor count for a thread: page faults, context switches, hardware events. BEGIN reads
 * the counts, END reads them again and writes the difference. If an event cannot be counted, the probe writes
 * nothing, and the area says why and how often. */
#ifndef PERFLAW_COUNTERS_H
#define PERFLAW_COUNTERS_H

#include "write.h"

#if defined(__has_include) /* the kernel's headers are a package of their own on some systems */
#if __has_include(<linux/perf_event.h>)
#include <linux/perf_event.h>
#define PERFLAW_HAS_COUNTERS
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* the counters of LLC probes come after those of SET_PERFCNTR */
enum { PERFLAW_REFERENCES = PERFLAW_COUNTERS, PERFLAW_MISSES };

typedef struct perflaw_counts {
    uint64_t first, second;
    uint32_t is_measured, counter; /* whether this execution is; which counter of SET_PERFCNTR */
} perflaw_counts;

#ifndef PERFLAW_PERF_EVENT_OPEN /* tests replace this, and the instruction below */
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

/* Note in the area why an event cannot be counted, unless a reason is there already. */
PERFLAW_SLOW void perflaw_note_refusal(const char *why, int error) {
    perflaw_head *head = perflaw_process.head;
    if (!head || head->refusal[0]) return;
    perflaw_text text = {head->refusal, head->refusal + sizeof head->refusal - 1};
    perflaw_text_add(&text, why);
    if (!error) return;
    perflaw_text_add(&text, error == ENOENT || error == ENODEV ||
                     error == EOPNOTSUPP ? ": this machine has no such counter (errno "
                       : error == EACCES || error == EPERM ? ": not allowed, see kernel.perf_event_paranoid (errno "
                       : error == ENOSYS                   ? ": this kernel has no counters (errno "
                                                           : ": failed (errno ");
    perflaw_text_add_number(&text, (uint64_t)error);
    perflaw_text_add(&text, ")");
}

/* Move a descriptor to a high number, which a program that closes and opens descriptors is not likely to use. */
PERFLAW_SLOW int perflaw_move_up(int file) {
    int moved = (int)syscall(SYS_fcntl, (long)file, 1030L /* F_DUPFD_CLOEXEC */, 512L);
    if (moved < 0) return file;
    perflaw_close(file);
    return moved;
}

#ifdef PERFLAW_HAS_COUNTERS
/* Open a counter of this thread: one of SET_PERFCNTR, or of the two of LLC probes. 0 if it is refused. */
PERFLAW_SLOW int perflaw_open_counter(perflaw_counter *counter, uint32_t number) {
    struct perf_event_attr event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    event.exclude_kernel = event.exclude_hv = 1;
    if (number < PERFLAW_COUNTERS) {
        event.type = PERF_TYPE_RAW;
        event.config = perflaw_process.counters[number] & ~(1ull << 63);
        if (!perflaw_process.counters[number])
            return perflaw_note_refusal("SET_PERFCNTR was not called for this counter", 0), 0;
    } else {
        event.type = PERF_TYPE_HARDWARE;
        event.config = number == PERFLAW_MISSES ? PERF_COUNT_HW_CACHE_MISSES : PERF_COUNT_HW_CACHE_REFERENCES;
    }
    int file = PERFLAW_PERF_EVENT_OPEN(&event);
    if (file < 0) return perflaw_note_refusal("perf_event_open", errno), 0;
    counter->page = perflaw_map(4096, PROT_READ, MAP_SHARED, file, 0);
    counter->file = perflaw_move_up(file) + 1;
    return 1;
}

/* Read a counter by the processor's instruction if the kernel allows that (its page says how, see
 * perf_event_open(2)), else by a system call. 0 if that fails. */
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
    return perflaw_note_refusal("compiled without linux/perf_event.h", 0), 0;
}
PERFLAW_SLOW int perflaw_read_counter(const perflaw_counter *counter, uint64_t *value) {
    (void)counter, (void)value;
    return 0;
}
#endif

/* The value of a counter of this thread, which is opened on first use. 0 if it cannot be read. */
PERFLAW_SLOW int perflaw_counter_value(perflaw_thread *self, uint32_t number, uint64_t *value) {
    perflaw_counter *counter = self->counters + number;
    if (!counter->file && !perflaw_open_counter(counter, number)) counter->file = -1;
    if (counter->file < 0) return 0;
    if (perflaw_read_counter(counter, value)) return 1;
    perflaw_note_refusal("a counter's descriptor was closed by the program", 0);
    return 0;
}

/* Read what a type of probe counts. 0 if it cannot be read. */
PERFLAW_SLOW int perflaw_read_counts(uint32_t type, perflaw_counts *counts) {
    struct rusage use;
    if (type == PERFLAW_FLT || type == PERFLAW_CTXSW) {
        if (syscall(SYS_getrusage, 1L /* RUSAGE_THREAD */, &use)) return 0;
        counts->first = (uint64_t)(type == PERFLAW_FLT ? use.ru_minflt : use.ru_nvcsw);
        counts->second = (uint64_t)(type == PERFLAW_FLT ? use.ru_majflt : use.ru_nivcsw);
        return 1;
    }
    perflaw_thread *self = perflaw_self && perflaw_self->home ? perflaw_self : perflaw_take_ring_slow();
    if (!self) return 0;
    if (type == PERFLAW_PERFCNTR) return perflaw_counter_value(self, counts->counter, &counts->first);
    return perflaw_counter_value(self, PERFLAW_REFERENCES, &counts->first) &&
           perflaw_counter_value(self, PERFLAW_MISSES, &counts->second);
}

PERFLAW_SLOW void perflaw_counts_begin_slow(uint32_t id, uint32_t type, uint32_t every, perflaw_counts *counts) {
    int error = errno;
    if (every > 1 && !perflaw_is_due(id, every)) return;
    counts->is_measured = (uint32_t)perflaw_read_counts(type, counts);
    perflaw_entry *entries = perflaw_process.entries;
    if (!counts->is_measured && entries && perflaw_process.head)
        __atomic_fetch_add(&entries[id].refused, 1u, __ATOMIC_RELAXED);
    errno = error;
}

PERFLAW_SLOW void perflaw_counts_end(uint32_t id, uint32_t type, const perflaw_counts *began) {
    int error = errno;
    perflaw_counts counts = *began;
    if (perflaw_read_counts(type, &counts))
        perflaw_write_record(id, type, type == PERFLAW_PERFCNTR ? 1 : 2, perflaw_now(), counts.first - began->first,
                      counts.second - began->second);
    errno = error;
}

PERFLAW_HOT perflaw_counts perflaw_counts_begin(uint32_t id, uint32_t type, uint32_t in_code, uint32_t counter) {
    perflaw_counts counts = {0, 0, 0, counter};
    uint64_t control = perflaw_control_word(id);
    if (PERFLAW_UNLIKELY(control & PERFLAW_ENABLED))
        perflaw_counts_begin_slow(id, type, perflaw_subsampling(id, type, in_code, control), &counts);
    return counts;
}

/* SET_PERFCNTR: the event's number and unit mask are those of the processor's manual. Threads that have opened this
 * counter before go on with what it was. */
PERFLAW_SLOW void perflaw_set_counter(uint32_t number, uint64_t event, uint64_t mask) {
    if (number < PERFLAW_COUNTERS) perflaw_process.counters[number] = event | mask << 8 | 1ull << 63;
}

#ifdef __cplusplus
}
#endif
#endif
