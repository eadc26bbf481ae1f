/* The beginning and the end of the process, of a fork's child, of a thread, and of a library that is unloaded. */
#ifndef PERFLAW_LIFECYCLE_H
#define PERFLAW_LIFECYCLE_H

#include "write.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A child of fork begins anew. Its area is made with its first probe, so that a child that only calls exec pays
 * nothing. It has copies of its parent's memory, but not of the rings. */
PERFLAW_SLOW void perflaw_on_fork(void) {
    perflaw_state *process = &perflaw_process;
    if (perflaw_self) perflaw_unmap(perflaw_self, sizeof *perflaw_self);
    perflaw_self = NULL;
    if (process->head) {
        if (process->parents) perflaw_unmap(process->parents, PERFLAW_FRONT_BYTES);
        process->parents = process->head;
    }
    process->head = NULL;
    /* the page holds 0 until there is an area, and threads that come meanwhile must not begin again */
    process->alive = NULL;
    process->crowded = process->making = 0;
    process->early_losses = 0;
    __atomic_store_n(&process->entries, (perflaw_entry *)NULL, __ATOMIC_RELEASE);
}

/* A thread ends: what it counted and has not written yet is written, and its ring is free. A probe that is executed
 * later while the thread ends takes a ring again, and this is called again. */
PERFLAW_SLOW void perflaw_on_thread_end(void *self) {
    if (!self || self != perflaw_self) return; /* in a child of fork, it is one of its parent's */
    perflaw_write_tallies();
    uint64_t signals = perflaw_block_signals();
    perflaw_thread_end(&perflaw_process, perflaw_self);
    perflaw_restore_signals(signals);
}

/* The entries of this process's area, or zeros if it has none. Signals are blocked. */
PERFLAW_SLOW perflaw_entry *perflaw_open_entries(perflaw_state *process) {
    perflaw_head *head = perflaw_open_area(process);
    if (!head) /* zeros, which take no memory: every probe is disabled */
        return (perflaw_entry *)perflaw_map(PERFLAW_TABLE_BYTES, PROT_READ, MAP_PRIVATE | PERFLAW_ANONYMOUS, -1, 0);
    perflaw_entry *entries = (perflaw_entry *)(void *)(head + 1);
    process->pid = head->pid;
    process->serial = __atomic_add_fetch(&head->serial, 1u, __ATOMIC_RELAXED);
    __atomic_fetch_add(&head->copies, 1u, __ATOMIC_RELAXED);
    if (process->parents) perflaw_inherit(entries, head, process->parents);
    if (perflaw_is_requested(PERFLAW_MAX_PROBES, NULL)) head->enable_all = 1; /* "*", because no probe has that id */
    process->entries = entries; /* first, because whoever sees the head may look there */
    __atomic_store_n(&process->head, head, __ATOMIC_SEQ_CST);
    perflaw_register_sites();
    uint32_t *alive = (uint32_t *)perflaw_map_private(4096);
    if (alive) *alive = 1;
    process->alive = alive;
    return entries;
}

/* What probes look at while another thread makes the area of a fork's child: the parent's entries, as which the
 * child begins. */
PERFLAW_SLOW perflaw_entry *perflaw_parent_entries(void) {
    perflaw_head *parents = __atomic_load_n(&perflaw_process.parents, __ATOMIC_ACQUIRE);
    return parents ? (perflaw_entry *)(void *)(parents + 1) : NULL;
}

/* Count the records that were lost before there was an area, as soon as there is one. Whoever adds to them looks for
 * the area again afterwards, so that nothing stays uncounted, whichever of the two was first. */
PERFLAW_SLOW void perflaw_count_early_losses(perflaw_state *process) {
    perflaw_head *head = __atomic_load_n(&process->head, __ATOMIC_SEQ_CST);
    uint64_t lost = head ? __atomic_exchange_n(&process->early_losses, (uint64_t)0, __ATOMIC_SEQ_CST) : 0;
    if (lost) __atomic_fetch_add(&head->lost_no_ring, lost, __ATOMIC_RELAXED);
}

/* Open the area, once. Gives the entries; NULL if another thread is doing that, or they cannot be had. Nobody waits
 * here. */
PERFLAW_SLOW perflaw_entry *perflaw_prepare(void) {
    perflaw_state *process = &perflaw_process;
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&process->making, &none, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return NULL;
    int error = errno;
    uint64_t signals = perflaw_block_signals();
    perflaw_entry *entries = perflaw_open_entries(process);
    __atomic_store_n(&process->entries, entries, __ATOMIC_RELEASE);
    perflaw_count_early_losses(process);
    perflaw_restore_signals(signals);
    errno = error;
    return entries;
}

/* The slow way to a ring, for a record that does not find one ready. NULL if the record is lost, which is counted
 * where it can be. errno stays as it was. */
PERFLAW_SLOW perflaw_thread *perflaw_take_ring_slow(void) {
    perflaw_state *process = &perflaw_process;
    perflaw_thread *self = perflaw_self;
    int error = errno;
    if (process->alive && !*process->alive) { /* a fork of which nobody was told */
        perflaw_on_fork();
        perflaw_prepare();
        self = NULL;
    }
    if (self && self->home) { /* a signal handler within a probe */
        self->home->lost_nested++;
        return NULL;
    }
    perflaw_head *head = __atomic_load_n(&process->head, __ATOMIC_ACQUIRE);
    if (!head) {
        __atomic_fetch_add(&process->early_losses, (uint64_t)1, __ATOMIC_SEQ_CST);
        perflaw_count_early_losses(process);
        return NULL;
    }
    if (!__atomic_load_n(&process->crowded, __ATOMIC_RELAXED) || /* else try again every 1024 losses */
        (__atomic_load_n(&head->lost_no_ring, __ATOMIC_RELAXED) & 1023) == 1023) {
        uint64_t signals = perflaw_block_signals();
        self = perflaw_self && perflaw_self->ring ? perflaw_self : perflaw_thread_begin(process);
        __atomic_store_n(&process->crowded, (uint32_t)!self, __ATOMIC_RELAXED);
        perflaw_restore_signals(signals);
    } else {
        self = NULL;
    }
    if (!self) __atomic_fetch_add(&head->lost_no_ring, (uint64_t)1, __ATOMIC_RELAXED);
    errno = error;
    return self;
}

/* This runs before anything else of this program or library. Every file of it calls it, and the first call counts. */
PERFLAW_SLOW __attribute__((constructor(101))) void perflaw_on_load(void) {
    perflaw_state *process = &perflaw_process;
    if (process->prepared || &__start_perflaw_sites[0] == &__stop_perflaw_sites[0]) return;
    process->prepared = !pthread_key_create(&process->key, perflaw_on_thread_end);
    pthread_atfork(NULL, NULL, perflaw_on_fork);
    if (!process->entries) perflaw_prepare();
}

/* Whether this is the program itself and no library: the kernel tells where the program's headers are. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
PERFLAW_SLOW int perflaw_is_program(void) {
    uintptr_t headers = (uintptr_t)getauxval(3); /* AT_PHDR */
    return headers - (uintptr_t)__ehdr_start < 4096;
}

/* This runs after everything else. The probes of a program go on, because other threads may still run. A library may
 * be unloaded: no thread may call it any more, and its rings are left. An area without a record that nobody asked
 * for is removed. */
PERFLAW_SLOW __attribute__((destructor(101))) void perflaw_on_unload(void) {
    perflaw_state *process = &perflaw_process;
    perflaw_head *head = process->head;
    if (!process->prepared) return;
    perflaw_write_tallies();
    uint64_t signals = perflaw_block_signals();
    if (!perflaw_is_program()) {
        __atomic_store_n(&process->entries, (perflaw_entry *)NULL, __ATOMIC_RELEASE);
        pthread_key_delete(process->key);
        if (head && perflaw_self) perflaw_thread_end(process, perflaw_self);
        for (uint32_t ring = 0; head && ring < head->rings; ring++)
            if (head->claims[ring] >> 32 == process->serial)
                __atomic_store_n(&head->claims[ring], (uint64_t)0, __ATOMIC_RELEASE);
        process->making = 1;
        process->head = NULL;
    }
    process->prepared = 0;
    if (head && !__atomic_sub_fetch(&head->copies, 1u, __ATOMIC_RELAXED) && !head->used &&
        !perflaw_environment("PERFLAW_PROBES"))
        syscall(SYS_unlinkat, (long)PERFLAW_HERE, process->path, 0L);
    perflaw_restore_signals(signals);
}

#ifdef __cplusplus
}
#endif
#endif
