#include "stubs.h"

#include "mirror.h"

#if defined(__x86_64__)

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

_Static_assert(sizeof(Registers) == 200 && RED_ZONE == 128, "the offsets below");

/* Where the callee may change a register, and the flags. What is pushed first has the highest address: from rbp on there are
 * rbp, r11, r10, r9, r8, rdi, rsi, rdx, rcx, flags, rax. */
#define PUSH_REGISTERS                         \
    "    pushq %rax\n"                         \
    "    .cfi_adjust_cfa_offset 8\n"           \
    "    lahf\n"                               \
    "    seto %al\n"                           \
    "    pushq %rax\n"                         \
    "    pushq %rcx\n"                         \
    "    pushq %rdx\n"                         \
    "    pushq %rsi\n"                         \
    "    pushq %rdi\n"                         \
    "    pushq %r8\n"                          \
    "    pushq %r9\n"                          \
    "    pushq %r10\n"                         \
    "    pushq %r11\n"                         \
    "    pushq %rbp\n"                         \
    "    .cfi_adjust_cfa_offset 80\n"          \
    "    .cfi_rel_offset rbp, 0\n"             \
    "    movq %rsp, %rbp\n"                    \
    "    .cfi_def_cfa_register rbp\n"

#define POP_REGISTERS                          \
    "    movq %rbp, %rsp\n"                    \
    "    .cfi_def_cfa_register rsp\n"          \
    "    popq %rbp\n"                          \
    "    .cfi_restore rbp\n"                   \
    "    popq %r11\n"                          \
    "    popq %r10\n"                          \
    "    popq %r9\n"                           \
    "    popq %r8\n"                           \
    "    popq %rdi\n"                          \
    "    popq %rsi\n"                          \
    "    popq %rdx\n"                          \
    "    popq %rcx\n"                          \
    "    popq %rax\n"                          \
    "    addb $127, %al\n" /* the overflow flag as it was, then the others */ \
    "    sahf\n"                               \
    "    popq %rax\n"                          \
    "    .cfi_adjust_cfa_offset -88\n"

/* Above what is pushed: the address of the displaced instructions, at 88(%rbp), the bytes left alone, the return address. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl inject_entry\n"
        ".hidden inject_entry\n"
        ".type inject_entry, @function\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa rsp, 144\n"
        "    nop\n"
        "inject_entry:\n"
        PUSH_REGISTERS
        "    cld\n"
        "    movq 88(%rbp), %rdi\n"
        "    leaq 224(%rbp), %rsi\n"
        "    andq $-16, %rsp\n"
        "    call inject_enter\n"
        "    testl %eax, %eax\n"
        "    jnz 2f\n"
        "1:\n"
        "    .cfi_remember_state\n"
        POP_REGISTERS
        "    ret $128\n"
        "    .cfi_restore_state\n"
        "2:  subq $208, %rsp\n" /* Registers */
        "    movq 80(%rbp), %rax\n"
        "    movq %rax, (%rsp)\n"
        "    movq 56(%rbp), %rax\n"
        "    movq %rax, 8(%rsp)\n"
        "    movq 64(%rbp), %rax\n"
        "    movq %rax, 16(%rsp)\n"
        "    movq %rbx, 24(%rsp)\n"
        "    movq 48(%rbp), %rax\n"
        "    movq %rax, 32(%rsp)\n"
        "    movq 40(%rbp), %rax\n"
        "    movq %rax, 40(%rsp)\n"
        "    movq (%rbp), %rax\n"
        "    movq %rax, 48(%rsp)\n"
        "    leaq 224(%rbp), %rax\n"
        "    movq %rax, 56(%rsp)\n"
        "    movq 32(%rbp), %rax\n"
        "    movq %rax, 64(%rsp)\n"
        "    movq 24(%rbp), %rax\n"
        "    movq %rax, 72(%rsp)\n"
        "    movq 16(%rbp), %rax\n"
        "    movq %rax, 80(%rsp)\n"
        "    movq 8(%rbp), %rax\n"
        "    movq %rax, 88(%rsp)\n"
        "    movq %r12, 96(%rsp)\n"
        "    movq %r13, 104(%rsp)\n"
        "    movq %r14, 112(%rsp)\n"
        "    movq %r15, 120(%rsp)\n"
        "    movq %xmm0, 128(%rsp)\n"
        "    movq %xmm1, 136(%rsp)\n"
        "    movq %xmm2, 144(%rsp)\n"
        "    movq %xmm3, 152(%rsp)\n"
        "    movq %xmm4, 160(%rsp)\n"
        "    movq %xmm5, 168(%rsp)\n"
        "    movq %xmm6, 176(%rsp)\n"
        "    movq %xmm7, 184(%rsp)\n"
        "    movq 88(%rbp), %rdi\n"
        "    movq %rsp, %rsi\n"
        "    call inject_read\n"
        "    jmp 1b\n"
        "    .cfi_endproc\n"
        ".size inject_entry, .-inject_entry\n"

        /* A frame of its own for the unwinder, which is 8 bytes high, because two frames at one height would be one to it. It
         * looks at the byte before a return address. */
        ".p2align 4\n"
        ".globl inject_leave\n"
        ".hidden inject_leave\n"
        ".type inject_leave, @function\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa rsp, 8\n"
        "    .cfi_val_offset rsp, -8\n"
        "    .cfi_offset rip, -16-" TEXT(MIRROR_DISTANCE) "\n"
        "    nop\n"
        "inject_leave:\n"
        "    leaq -8(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        PUSH_REGISTERS
        "    cld\n"
        "    leaq 88(%rbp), %rdi\n"
        "    andq $-16, %rsp\n"
        "    call inject_exit\n"
        "    movq %rax, 88(%rbp)\n"
        POP_REGISTERS
        "    leaq 8(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp *-8(%rsp)\n" /* not a return, which the processor would foresee to go elsewhere */
        "    .cfi_endproc\n"
        ".size inject_leave, .-inject_leave\n");

#endif
