/* The vector and floating-point registers of the program, where its code does not expect a call.
 *
 * An injected function (inject/) is entered and left behind the compiler's back, so every register has to stay as it is. What
 * such an event usually needs is compiled without vector registers (ONLY_GENERAL_REGISTERS before the first include of a
 * file). What it seldom needs may use them and begins with KEEP_VECTORS.
 *
 * Ownership: none. Threads: any. Cost: a test where nothing is injected, else some 50 ns and 3 KB of stack. */
#ifndef PERFLAW_COMPILED_VECTORS_H
#define PERFLAW_COMPILED_VECTORS_H

#include <stdint.h>

#if defined(__x86_64__)

/* x87, SSE, AVX and AVX-512; not AMX, whose state is large and which no such event touches. */
enum { VECTOR_STATES = 0xe7, VECTOR_BYTES = 2816, XSAVE_HEADER = 512, XSAVE_HEADER_BYTES = 64 };

typedef struct Vectors {
    _Alignas(64) char area[VECTOR_BYTES];
} Vectors;

extern uint32_t vectors_kept; /* the states to be kept; 0 while nothing is injected */
extern int vectors_compact;   /* whether the processor leaves out what is unused */

/* Keep the registers from now on. 0 if this processor cannot do it in the room there is. */
int vectors_start(void);

static inline void vectors_save(Vectors *vectors) {
    if (!vectors_kept) return;
    uint64_t *header = (uint64_t *)(vectors->area + XSAVE_HEADER);
    for (int at = 0; at < XSAVE_HEADER_BYTES / 8; at++) *(volatile uint64_t *)(header + at) = 0;
    if (vectors_compact) __asm__ volatile("xsavec64 %0" : "+m"(*vectors) : "a"(vectors_kept), "d"(0) : "memory");
    else __asm__ volatile("xsave64 %0" : "+m"(*vectors) : "a"(vectors_kept), "d"(0) : "memory");
}

static inline void vectors_restore(Vectors *vectors) {
    if (vectors_kept) __asm__ volatile("xrstor64 %0" ::"m"(*vectors), "a"(vectors_kept), "d"(0) : "memory");
}

#define KEEP_VECTORS                                                \
    Vectors vectors __attribute__((cleanup(vectors_restore)));      \
    vectors_save(&vectors)

#else
#define KEEP_VECTORS (void)0
#endif

#endif
