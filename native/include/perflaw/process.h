/* What a program or library with probes knows of itself: where the area is, and what each of its threads writes to. */
#ifndef PERFLAW_PROCESS_H
#define PERFLAW_PROCESS_H

#include "layout.h"
#include "system.h"

enum { PERFLAW_MAX_PATH = 512, PERFLAW_COUNTERS = 8, PERFLAW_THREAD_COUNTERS = PERFLAW_COUNTERS + 2 };

typedef struct perflaw_state {
    /* what probes look at: those of the area; zeros if there is no area; NULL if nothing was made yet */
    perflaw_entry *entries;
    perflaw_head *head;       /* NULL if there is no area */
    perflaw_head *parents;    /* in a fork's child until it has an area: its parent's, as which it goes on */
    const uint32_t *alive;    /* holds 1, and in a child of fork 0 */
    uint32_t making;          /* 1 while, and after, some thread made the area */
    uint32_t pid, serial;     /* serial: number among the copies that share the area */
    uint32_t crowded;         /* lately there was no free ring */
    uint32_t prepared;        /* the key and the fork handler exist */
    uint64_t early_losses;          /* records lost while another thread makes the area of a fork's child */
    pthread_key_t key;        /* its destructor is called when a thread ends */
    uint64_t device, inode;   /* of the area's file, which is opened again for each ring */
    char path[PERFLAW_MAX_PATH];
    uint64_t counters[PERFLAW_COUNTERS]; /* what SET_PERFCNTR set, plus 1 << 63; 0 if it was not called */
} perflaw_state;

typedef struct perflaw_tally {
    uint64_t executions, cycles; /* since the last record */
} perflaw_tally;

typedef struct perflaw_counter {
    int32_t file;    /* 0 if it was not tried yet, -1 if it is refused, else the descriptor plus 1 */
    int32_t unused;
    void *page;      /* how to read it without a system call; NULL if that is not possible */
} perflaw_counter;

typedef struct perflaw_thread {
    /* NULL while a record is written, so that a signal handler's probe does not tear the record */
    perflaw_ring *ring;
    uint64_t mask, who;           /* ring_records - 1; the thread's bits of a record's `what` */
    const volatile uint32_t *cpu; /* where the kernel keeps the number of the CPU; NULL if it must be asked */
    perflaw_ring *home;           /* the ring at all times; NULL in a fork's child, whose copy of this is zeros */
    void *window;                 /* the mapped pages around the ring */
    size_t window_bytes;
    uint32_t number, from, to;    /* number of the ring; ids with tallies are from <= id < to */
    perflaw_counter counters[PERFLAW_THREAD_COUNTERS];
    perflaw_tally tallies[PERFLAW_MAX_PROBES];
} perflaw_thread;

/* PERFLAW_SITE writes one where a probe stands, so that all probes are known before any is executed. */
typedef struct perflaw_site {
    uint32_t id, type;
} perflaw_site;

#ifdef __cplusplus
extern "C" {
#endif

/* The names carry the version, so that parts built with headers of different versions share nothing. */
#define perflaw_process perflaw_process_1
#define perflaw_self perflaw_self_1
PERFLAW_SINGLE perflaw_state perflaw_process;

/* This takes 8 bytes of the static TLS, of which glibc reserves some for libraries that are loaded later; other C
 * libraries do not. */
#if defined(__GLIBC__)
PERFLAW_SINGLE __attribute__((tls_model("initial-exec"))) __thread perflaw_thread *perflaw_self;
#else
PERFLAW_SINGLE __thread perflaw_thread *perflaw_self;
#endif

/* The linker defines these: all sites of this program or library. Both are 0 if there is none. */
extern const perflaw_site __start_perflaw_sites[] __attribute__((weak, visibility("hidden")));
extern const perflaw_site __stop_perflaw_sites[] __attribute__((weak, visibility("hidden")));

/* glibc defines this since 2.35: where the kernel keeps the CPU's number, from the thread pointer. */
extern const long perflaw_rseq_offset __asm__("__rseq_offset") __attribute__((weak));

PERFLAW_HOT perflaw_ring *perflaw_ring_at(void *window, uint64_t offset) {
    return (perflaw_ring *)(void *)((char *)window + (offset & 4095));
}
PERFLAW_HOT uint64_t perflaw_ring_bytes(const perflaw_head *head) {
    return PERFLAW_RING_HEAD_BYTES + sizeof(perflaw_record) * (uint64_t)head->ring_records;
}

#ifdef __cplusplus
}
#endif
#endif
