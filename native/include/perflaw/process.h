/* What a program or library with probes knows of itself: where the area is, and what each of its threads writes into. */
#ifndef PERFLAW_PROCESS_H
#define PERFLAW_PROCESS_H

#include "layout.h"
#include "system.h"

enum { PERFLAW_PATH_MOST = 512, PERFLAW_COUNTERS = 8, PERFLAW_THREAD_COUNTERS = PERFLAW_COUNTERS + 2 };

typedef struct perflaw_state {
    perflaw_entry *entries;   /* what probes look at: the area's; zeros: there is none; NULL: nothing is made yet */
    perflaw_head *head;       /* NULL: there is no area */
    perflaw_head *parents;    /* in a fork's child until it has made an area: its parent's, to go on as that one was */
    const uint32_t *alive;    /* 1; in a child of fork 0 */
    uint32_t making;          /* 1 while (or since) somebody made the area */
    uint32_t pid, serial;     /* our number among the copies that share the area */
    uint32_t crowded;         /* no ring was to be had lately */
    uint32_t prepared;        /* the key and the fork handler are there */
    uint64_t unmade;          /* records lost while another thread makes a fork's child its area */
    pthread_key_t key;        /* tells us when a thread ends */
    uint64_t device, inode;   /* of the area's file, which is opened again for each ring */
    char path[PERFLAW_PATH_MOST];
    uint64_t counters[PERFLAW_COUNTERS]; /* what SET_PERFCNTR said, plus 1 << 63; 0: nothing */
} perflaw_state;

typedef struct perflaw_tally {
    uint64_t executions, cycles; /* since the last record */
} perflaw_tally;

typedef struct perflaw_counter {
    int32_t file;    /* 0: not tried yet, -1: refused, otherwise the descriptor plus 1 */
    int32_t unused;
    void *page;      /* how to read it without a system call; NULL where that cannot be */
} perflaw_counter;

typedef struct perflaw_thread {
    perflaw_ring *ring;           /* NULL while a record is written: a signal handler's probe sees that it would tear it */
    uint64_t mask, who;           /* ring_records - 1; the thread's part of "what" */
    const volatile uint32_t *cpu; /* where the kernel keeps the number of our CPU; NULL where it must be asked */
    perflaw_ring *home;           /* the ring, always; NULL: none (a fork's child, whose copy of this is zeros) */
    void *window;                 /* the pages around the ring, as mapped */
    size_t window_bytes;
    uint32_t number, from, to;    /* of the ring; the ids with tallies: from <= id < to */
    perflaw_counter counters[PERFLAW_THREAD_COUNTERS];
    perflaw_tally tallies[PERFLAW_PROBES_MOST];
} perflaw_thread;

/* One that PERFLAW_SITE writes where a probe stands, so that all probes are known before any is executed. */
typedef struct perflaw_site {
    uint32_t id, type;
} perflaw_site;

#ifdef __cplusplus
extern "C" {
#endif

/* Names carry the version: parts built with headers of different versions keep to themselves. */
#define perflaw_process perflaw_process_1
#define perflaw_self perflaw_self_1
PERFLAW_ONE perflaw_state perflaw_process;

/* 8 bytes of the static TLS, which libraries loaded later have some of in glibc; nowhere else may they count on that. */
#if defined(__GLIBC__)
PERFLAW_ONE __attribute__((tls_model("initial-exec"))) __thread perflaw_thread *perflaw_self;
#else
PERFLAW_ONE __thread perflaw_thread *perflaw_self;
#endif

/* The linker's: all sites of this program or library; both 0 where there is none. */
extern const perflaw_site __start_perflaw_sites[] __attribute__((weak, visibility("hidden")));
extern const perflaw_site __stop_perflaw_sites[] __attribute__((weak, visibility("hidden")));

/* glibc's, since 2.35: where the kernel keeps the CPU's number, from the thread pointer. */
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
