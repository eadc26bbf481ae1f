/* A thread's ring: the thread claims it with its first record and leaves it when it ends; another thread may then
 * claim it. */
#ifndef PERFLAW_RINGS_H
#define PERFLAW_RINGS_H

#include "register.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a claim is of a thread that ended without leaving its ring (killed by exec, or ended by a bare system
 * call). */
PERFLAW_SLOW int perflaw_is_abandoned(uint64_t claim) {
    long thread = (long)(claim & 0xffffffff);
    return claim && syscall(SYS_tgkill, (long)perflaw_process.pid, thread, 0L) && errno == ESRCH;
}

/* Claim a ring. Gives its number, -1 if there is none. Free ones are claimed first, and from the front, because few
 * are ever used. */
PERFLAW_SLOW int perflaw_claim_ring(perflaw_head *head, uint64_t claim) {
    for (int round = 0; round < 2; round++) {
        for (uint32_t ring = 0; ring < head->rings; ring++) {
            uint64_t found = __atomic_load_n(&head->claims[ring], __ATOMIC_RELAXED);
            if (round ? !perflaw_is_abandoned(found) : found != 0) continue;
            if (__atomic_compare_exchange_n(&head->claims[ring], &found, claim, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return (int)ring;
        }
    }
    return -1;
}

/* Open the area's file again. -1 if it is gone or another file. No descriptor stays open in between, because
 * programs close those that they do not know, and the number would then be another file's. */
PERFLAW_SLOW int perflaw_reopen_area(const perflaw_state *process) {
    struct stat about;
    int file = (int)syscall(SYS_openat, (long)PERFLAW_HERE, process->path, (long)(O_RDWR | PERFLAW_O_FLAGS), 0L);
    if (file < 0) return -1;
    if (!fstat(file, &about) && about.st_dev == process->device && about.st_ino == process->inode) return file;
    perflaw_close(file);
    return -1;
}

/* Allocate and map ring number self->number. 0 if the disk is full or the file is gone. */
PERFLAW_SLOW int perflaw_map_ring(perflaw_thread *self, const perflaw_state *process) {
    uint64_t bytes = perflaw_ring_bytes(process->head);
    uint64_t begin = PERFLAW_FRONT_BYTES + self->number * bytes, from = begin & ~4095ull;
    int file = perflaw_reopen_area(process);
    if (file < 0) return 0;
    self->window_bytes = (size_t)(begin + bytes - from);
    self->window = NULL;
    if (perflaw_allocate(file, (int64_t)from, (int64_t)self->window_bytes))
        self->window = perflaw_map(self->window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (int64_t)from);
    perflaw_close(file);
    if (!self->window) return 0;
    syscall(SYS_madvise, self->window, self->window_bytes, (long)PERFLAW_DONTFORK);
    self->home = perflaw_ring_at(self->window, begin);
    return 1;
}

/* Where the kernel keeps the number of this thread's CPU; NULL if it does not (an old C library, or one that was
 * told not to). */
PERFLAW_SLOW const volatile uint32_t *perflaw_cpu_address(void) {
#if defined(__x86_64__) && defined(__GLIBC__)
    if (&perflaw_rseq_offset && perflaw_rseq_offset) {
        char *thread;
        __asm__("mov {%%fs:0, %0|%0, fs:0}" : "=r"(thread)); /* in either syntax of the assembler */
        const volatile uint32_t *place = (const volatile uint32_t *)(void *)(thread + perflaw_rseq_offset) + 1;
        if ((int32_t)*place >= 0) return place;
    }
#endif
    return NULL;
}

/* Give this thread a ring; NULL if there is none. Signals are blocked. */
PERFLAW_SLOW perflaw_thread *perflaw_thread_begin(perflaw_state *process) {
    long thread = syscall(SYS_gettid);
    /* this is a child of vfork, and all it has is its parent's */
    if ((uint32_t)syscall(SYS_getpid) != process->pid) return NULL;
    perflaw_thread *self = perflaw_self ? perflaw_self : (perflaw_thread *)perflaw_map_private(sizeof *self);
    if (!self) return NULL;
    uint64_t claim = (uint64_t)process->serial << 32 | (uint32_t)thread;
    int ring = perflaw_claim_ring(process->head, claim);
    self->number = (uint32_t)ring;
    if (ring < 0 || !perflaw_map_ring(self, process)) {
        if (ring >= 0) __atomic_store_n(&process->head->claims[ring], (uint64_t)0, __ATOMIC_RELEASE);
        perflaw_unmap(self, sizeof *self);
        return perflaw_self = NULL;
    }
    __atomic_fetch_add(&process->head->used, 1u, __ATOMIC_RELAXED);
    self->mask = process->head->ring_records - 1;
    self->who = (uint64_t)(thread & 0xffffff) << 40;
    self->cpu = perflaw_cpu_address();
    self->from = PERFLAW_MAX_PROBES;
    self->home->thread = (uint32_t)thread;
    __atomic_store_n(&self->home->state, (uint32_t)PERFLAW_RING_IN_USE, __ATOMIC_RELEASE);
    self->ring = self->home;
    perflaw_self = self;
    if (process->prepared) pthread_setspecific(process->key, self);
    return self;
}

/* Leave the ring, in which the records stay. Signals are blocked. */
PERFLAW_SLOW void perflaw_thread_end(perflaw_state *process, perflaw_thread *self) {
    perflaw_self = NULL;
    for (int at = 0; at < PERFLAW_THREAD_COUNTERS; at++)
        if (self->counters[at].file > 0) perflaw_close(self->counters[at].file - 1);
    for (int at = 0; at < PERFLAW_THREAD_COUNTERS; at++)
        if (self->counters[at].page) perflaw_unmap(self->counters[at].page, 4096);
    if (self->home) {
        __atomic_store_n(&self->home->state, (uint32_t)PERFLAW_RING_ENDED, __ATOMIC_RELEASE);
        __atomic_store_n(&process->head->claims[self->number], (uint64_t)0, __ATOMIC_RELEASE);
        perflaw_unmap(self->window, self->window_bytes);
    }
    perflaw_unmap(self, sizeof *self);
    __atomic_store_n(&process->crowded, 0u, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif
#endif
