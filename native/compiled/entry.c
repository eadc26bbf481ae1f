#include "entry.h"

#define EXPORTED __attribute__((visibility("default")))

#if defined(__x86_64__)

_Static_assert(sizeof(Registers) == 200, "the offsets below");

/* A call keeps rbx, rbp and r12 to r15, so these are taken only where features are read, and all others before. rax, rsi,
 * rdi, r10 and r11 are lost: the call itself needs them, or the linker's stub does. */
__asm__(".text\n"
        ".globl __cyg_profile_func_enter\n"
        ".type __cyg_profile_func_enter, @function\n"
        "__cyg_profile_func_enter:\n"
        "    .cfi_startproc\n"
        "    pushq %rdx\n"
        "    pushq %rcx\n"
        "    pushq %r8\n"
        "    pushq %r9\n"
        "    pushq %rdi\n"
        "    pushq %rsi\n"
        "    leaq 56(%rsp), %rdx\n" /* where the stack stood at the call */
        "    subq $8, %rsp\n" /* the stack is aligned */
        "    .cfi_adjust_cfa_offset 56\n"
        "    call entry_quick\n" /* it leaves the vector registers alone */
        "    testl %eax, %eax\n"
        "    jz 2f\n"
        "    addq $56, %rsp\n"
        "    .cfi_adjust_cfa_offset -56\n"
        "    ret\n"
        "    .cfi_adjust_cfa_offset 56\n"
        "2:  addq $8, %rsp\n"
        "    popq %rsi\n"
        "    popq %rdi\n"
        "    popq %r9\n"
        "    popq %r8\n"
        "    popq %rcx\n"
        "    popq %rdx\n"
        "    .cfi_adjust_cfa_offset -56\n"
        "    subq $216, %rsp\n" /* Registers, and the stack is aligned */
        "    .cfi_adjust_cfa_offset 216\n"
        "    movq %rdx, 8(%rsp)\n"
        "    movq %rcx, 16(%rsp)\n"
        "    movq %r8, 64(%rsp)\n"
        "    movq %r9, 72(%rsp)\n"
        "    movq %xmm0, 128(%rsp)\n"
        "    movq %xmm1, 136(%rsp)\n"
        "    movq %xmm2, 144(%rsp)\n"
        "    movq %xmm3, 152(%rsp)\n"
        "    movq %xmm4, 160(%rsp)\n"
        "    movq %xmm5, 168(%rsp)\n"
        "    movq %xmm6, 176(%rsp)\n"
        "    movq %xmm7, 184(%rsp)\n"
        "    leaq 224(%rsp), %rdx\n" /* where the stack stood at the call */
        "    call entry_begin\n"
        "    testl %eax, %eax\n"
        "    jnz 1f\n"
        "    addq $216, %rsp\n"
        "    .cfi_adjust_cfa_offset -216\n"
        "    ret\n"
        "    .cfi_adjust_cfa_offset 216\n"
        "1:  movq %rbx, 24(%rsp)\n"
        "    movq %rbp, 48(%rsp)\n"
        "    leaq 224(%rsp), %rax\n"
        "    movq %rax, 56(%rsp)\n"
        "    movq %r12, 96(%rsp)\n"
        "    movq %r13, 104(%rsp)\n"
        "    movq %r14, 112(%rsp)\n"
        "    movq %r15, 120(%rsp)\n"
        "    movq %rsp, %rdi\n"
        "    call entry_read\n"
        "    addq $216, %rsp\n"
        "    .cfi_adjust_cfa_offset -216\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size __cyg_profile_func_enter, .-__cyg_profile_func_enter\n");

#else

/* What arguments are is not known to other machines' recordings. */
EXPORTED void __cyg_profile_func_enter(void *function, void *site) {
    if (entry_begin(function, site, (uintptr_t)__builtin_dwarf_cfa())) entry_read(NULL);
}

#endif
