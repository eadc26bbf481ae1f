#include "vectors.h"

#if defined(__x86_64__)

#include <cpuid.h>

enum { OSXSAVE = 1 << 27, STATES = 0xd, XSAVEC = 1 << 1 };

uint32_t vectors_kept;
int vectors_compact;

int vectors_start(void) {
    uint32_t eax, ebx, ecx, edx, enabled, high;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
    uint32_t states = enabled & VECTOR_STATES, bytes = XSAVE_HEADER + XSAVE_HEADER_BYTES;
    for (uint32_t state = 2; state < 8; state++) {
        if (!(states >> state & 1) || !__get_cpuid_count(STATES, state, &eax, &ebx, &ecx, &edx)) continue;
        if (eax + ebx > bytes) bytes = eax + ebx; /* its size and its offset */
    }
    if (bytes > VECTOR_BYTES) return 0;
    vectors_compact = __get_cpuid_count(STATES, 1, &eax, &ebx, &ecx, &edx) && eax & XSAVEC;
    vectors_kept = states;
    return 1;
}

#endif
