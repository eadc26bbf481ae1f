/* One growable region in a shared file, which outlives the process that writes it.
 *
 * Ownership: the caller owns the Arena and passes it on; blocks belong to the arena until arena_free.
 * Threads: no locks. One thread at a time (Python: who holds the GIL), or an arena each.
 * Cost: allocation about 5 ns from a free list; growth is two system calls per 256 kB to 4 MB.
 * Fork: the child shares the mapping. It must arena_forget before its first event.
 */
#ifndef PERFLAW_ARENA_H
#define PERFLAW_ARENA_H

#include <stddef.h>

#include "layout.h"

typedef struct Arena {
    uint8_t *base; /* constant for the arena's life: address space is reserved once, so pointers into it stay valid */
    Header *head;
    uint64_t reserved, mapped;
    int file;
} Arena;

/* Create (or replace) the file at path, of at most limit bytes. 0 or errno. */
int arena_create(Arena *arena, const char *path, uint64_t limit);
/* Map an existing file for reading only. 0 or errno; EPROTO if it is not an arena of this version. */
int arena_attach(Arena *arena, const char *path);
/* Unmap; the file stays. */
void arena_forget(Arena *arena);

/* A zeroed block of 16-byte alignment; 0 if the disk or the limit refuses, which head->full then says. */
Offset arena_alloc(Arena *arena, uint64_t size);
/* Give back a block of this size; nothing may refer to it any more. 0 is allowed. */
void arena_free(Arena *arena, Offset block, uint64_t size);

static inline void *arena_at(const Arena *arena, Offset offset) { return arena->base + offset; }

/* Make what was stored before visible before what is stored after, to whoever reads a killed writer's file. The kernel
 * keeps a dead thread's stores in order, so only the compiler has to be held back. */
static inline void arena_publish(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

#endif
