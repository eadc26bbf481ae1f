/* The beginning and the end: of the process, of a fork's child, of a thread, of a library that is unloaded. */
#ifndef PERFLAW_BEGIN_H
#define PERFLAW_BEGIN_H

#include "write.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What begins anew in a child of fork: its area is made with its first probe, so that a child which only calls exec pays
 * nothing. Of the parent's memory it has copies, but not the rings. */
PERFLAW_SLOW void perflaw_forked(void) {
    perflaw_state *process = &perflaw_process;
    if (perflaw_self) perflaw_unmap(perflaw_self, sizeof *perflaw_self);
    perflaw_self = NULL;
    if (process->head) {
        if (process->parents) perflaw_unmap(process->parents, PERFLAW_FRONT_BYTES);
        process->parents = process->head;
    }
    process->head = NULL;
    process->alive = NULL; /* the page says 0 until there is an area: threads that come meanwhile must not begin again */
    process->crowded = process->making = 0;
    process->unmade = 0;
    __atomic_store_n(&process->entries, (perflaw_entry *)NULL, __ATOMIC_RELEASE);
}

/* A thread ends: what it counted and did not tell yet is told, its ring is free. A probe later in this thread's end takes a
 * ring again, and we are called again. */
PERFLAW_SLOW void perflaw_thread_ends(void *is) {
    if (!is || is != perflaw_self) return; /* in a child of fork, one of its parent's */
    perflaw_tell_tallies();
    uint64_t signals = perflaw_block_signals();
    perflaw_part(&perflaw_process, perflaw_self);
    perflaw_restore_signals(signals);
}

/* The area of this process, or its absence; signals are blocked. */
PERFLAW_SLOW perflaw_entry *perflaw_found(perflaw_state *process) {
    perflaw_head *head = perflaw_open_area(process);
    if (!head) /* zeros that no memory is spent on: every probe is disabled */
        return (perflaw_entry *)perflaw_map(PERFLAW_TABLE_BYTES, PROT_READ, MAP_PRIVATE | PERFLAW_ANONYMOUS, -1, 0);
    perflaw_entry *entries = (perflaw_entry *)(void *)(head + 1);
    process->pid = head->pid;
    process->serial = __atomic_add_fetch(&head->serial, 1u, __ATOMIC_RELAXED);
    __atomic_fetch_add(&head->copies, 1u, __ATOMIC_RELAXED);
    if (process->parents) perflaw_inherit(entries, head, process->parents);
    if (perflaw_asked_for(PERFLAW_PROBES_MOST, NULL)) head->enable_all = 1; /* "*": no id is that one */
    process->entries = entries; /* first: whoever sees the head may look there */
    __atomic_store_n(&process->head, head, __ATOMIC_SEQ_CST);
    perflaw_register_sites();
    uint32_t *alive = (uint32_t *)perflaw_private(4096);
    if (alive) *alive = 1;
    process->alive = alive;
    return entries;
}

/* What probes look at while another thread makes a fork's child its area: the parent's, as which it will begin. */
PERFLAW_SLOW perflaw_entry *perflaw_meanwhile(void) {
    perflaw_head *parents = __atomic_load_n(&perflaw_process.parents, __ATOMIC_ACQUIRE);
    return parents ? (perflaw_entry *)(void *)(parents + 1) : NULL;
}

/* Count what was lost meanwhile, as soon as there is where. Whoever adds to it looks again for the area afterwards, so
 * that nothing stays uncounted whichever of the two was first. */
PERFLAW_SLOW void perflaw_count_unmade(perflaw_state *process) {
    perflaw_head *head = __atomic_load_n(&process->head, __ATOMIC_SEQ_CST);
    uint64_t lost = head ? __atomic_exchange_n(&process->unmade, (uint64_t)0, __ATOMIC_SEQ_CST) : 0;
    if (lost) __atomic_fetch_add(&head->lost_no_ring, lost, __ATOMIC_RELAXED);
}

/* Make ready, once; the entries, NULL where another thread is at it or nothing can be had. Nobody waits here. */
PERFLAW_SLOW perflaw_entry *perflaw_prepare(void) {
    perflaw_state *process = &perflaw_process;
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&process->making, &none, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return NULL;
    int error = errno;
    uint64_t signals = perflaw_block_signals();
    perflaw_entry *entries = perflaw_found(process);
    __atomic_store_n(&process->entries, entries, __ATOMIC_RELEASE);
    perflaw_count_unmade(process);
    perflaw_restore_signals(signals);
    errno = error;
    return entries;
}

/* The slow way to a ring, of every record that does not find one ready. NULL: the record is lost, and counted where that
 * can be. errno stays what it was. */
PERFLAW_SLOW perflaw_thread *perflaw_take_slowly(void) {
    perflaw_state *process = &perflaw_process;
    perflaw_thread *self = perflaw_self;
    int error = errno;
    if (process->alive && !*process->alive) { /* a fork that told nobody */
        perflaw_forked();
        perflaw_prepare();
        self = NULL;
    }
    if (self && self->home) { /* a signal handler within a probe */
        self->home->lost_nested++;
        return NULL;
    }
    perflaw_head *head = __atomic_load_n(&process->head, __ATOMIC_ACQUIRE);
    if (!head) {
        __atomic_fetch_add(&process->unmade, (uint64_t)1, __ATOMIC_SEQ_CST);
        perflaw_count_unmade(process);
        return NULL;
    }
    if (!__atomic_load_n(&process->crowded, __ATOMIC_RELAXED) || (__atomic_load_n(&head->lost_no_ring, __ATOMIC_RELAXED) & 1023) == 1023) {
        uint64_t signals = perflaw_block_signals();
        self = perflaw_self && perflaw_self->ring ? perflaw_self : perflaw_join(process);
        __atomic_store_n(&process->crowded, (uint32_t)!self, __ATOMIC_RELAXED);
        perflaw_restore_signals(signals);
    } else {
        self = NULL;
    }
    if (!self) __atomic_fetch_add(&head->lost_no_ring, (uint64_t)1, __ATOMIC_RELAXED);
    errno = error;
    return self;
}

/* Before anything else of this program or library; every file of it asks for this, the first one gets it. */
PERFLAW_SLOW __attribute__((constructor(101))) void perflaw_begins(void) {
    perflaw_state *process = &perflaw_process;
    if (process->prepared || &__start_perflaw_sites[0] == &__stop_perflaw_sites[0]) return;
    process->prepared = !pthread_key_create(&process->key, perflaw_thread_ends);
    pthread_atfork(NULL, NULL, perflaw_forked);
    if (!process->entries) perflaw_prepare();
}

/* Whether we are the program itself and no library: the kernel tells where its headers are. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
PERFLAW_SLOW int perflaw_is_program(void) {
    uintptr_t headers = (uintptr_t)getauxval(3); /* AT_PHDR */
    return headers - (uintptr_t)__ehdr_start < 4096;
}

/* After everything else. A program's probes go on: other threads may still run. A library is unloaded, perhaps: no thread
 * may come back here, and its rings are left. An area without a record, which nobody asked for, is removed. */
PERFLAW_SLOW __attribute__((destructor(101))) void perflaw_ends(void) {
    perflaw_state *process = &perflaw_process;
    perflaw_head *head = process->head;
    if (!process->prepared) return;
    perflaw_tell_tallies();
    uint64_t signals = perflaw_block_signals();
    if (!perflaw_is_program()) {
        __atomic_store_n(&process->entries, (perflaw_entry *)NULL, __ATOMIC_RELEASE);
        pthread_key_delete(process->key);
        if (head && perflaw_self) perflaw_part(process, perflaw_self);
        for (uint32_t ring = 0; head && ring < head->rings; ring++)
            if (head->claims[ring] >> 32 == process->serial)
                __atomic_store_n(&head->claims[ring], (uint64_t)0, __ATOMIC_RELEASE);
        process->making = 1;
        process->head = NULL;
    }
    process->prepared = 0;
    if (head && !__atomic_sub_fetch(&head->copies, 1u, __ATOMIC_RELAXED) && !head->used && !perflaw_variable("PERFLAW_PROBES"))
        syscall(SYS_unlinkat, (long)PERFLAW_HERE, process->path, 0L);
    perflaw_restore_signals(signals);
}

#ifdef __cplusplus
}
#endif
#endif
