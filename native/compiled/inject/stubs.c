#include "stubs.h"

#include "mirror.h"

#if defined(__x86_64__)

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

_Static_assert(sizeof(Registers) == 200 && RED_ZONE == 128 && STUB_RISE == 8, "the offsets below");

/* For the unwinder: the frame before this one is 8 bytes high and returns to where the mirror says. */
#define RETURNS_TO_MIRROR                      \
    "    .cfi_val_offset rsp, -8\n"            \
    "    .cfi_offset rip, -16-" TEXT(MIRROR_DISTANCE) "\n"

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
        "inject_entry:\n"
        PUSH_REGISTERS
        "    movq 88(%rbp), %rdi\n"
        "    leaq 224(%rbp), %rsi\n"
        "    andq $-16, %rsp\n"
        "    call inject_quick\n"
        "    testl %eax, %eax\n"
        "    jz 2f\n"
        "1:\n"
        "    .cfi_remember_state\n"
        POP_REGISTERS
        /* The call reads its target where it then writes the return address, so that no signal handler overwrites either. */
        "    popq 128(%rsp)\n"
        "    .cfi_def_cfa rsp, 144\n" RETURNS_TO_MIRROR
        "    leaq 136(%rsp), %rsp\n"
        "    .cfi_def_cfa rsp, 8\n"
        "    call *-8(%rsp)\n"
        /* A frame of its own for the unwinder, which is 8 bytes high, because two frames at one height would be one to it. It
         * looks at the byte before a return address. */
        ".globl inject_leave\n"
        ".hidden inject_leave\n"
        "inject_leave:\n"
        "    leaq -8(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        PUSH_REGISTERS
        "    leaq 88(%rbp), %rdi\n"
        "    andq $-16, %rsp\n"
        "    call inject_exit\n"
        "    movq %rax, 88(%rbp)\n"
        POP_REGISTERS
        "    ret\n"

        "    .cfi_restore_state\n"
        "2:  cld\n"
        "    movq 88(%rbp), %rdi\n"
        "    leaq 224(%rbp), %rsi\n"
        "    call inject_enter\n"
        "    testl %eax, %eax\n"
        "    jz 4f\n"
        "    testl $2, %eax\n"
        "    jz 3f\n"
        "    pushq %rax\n"
        "    subq $200, %rsp\n" /* Registers */
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
        "    movq 200(%rsp), %rax\n"
        "3:  testl $1, %eax\n"
        "    jnz 1b\n"
        "4:  subq $8, 88(%rbp)\n" /* STUB_RISE */
        POP_REGISTERS
        "    leaq 8(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp *-8(%rsp)\n"
        "    .cfi_endproc\n"
        ".size inject_entry, .-inject_entry\n"
        /* The end of inject_entry alone: no flag changes. */
        ".p2align 4\n"
        ".globl inject_rest\n"
        ".hidden inject_rest\n"
        ".type inject_rest, @function\n"
        "inject_rest:\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa rsp, 144\n"
        "    pushq %rax\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    movq 8(%rsp), %rax\n"
        "    leaq -8(%rax), %rax\n" /* STUB_RISE */
        "    movq %rax, 8(%rsp)\n"
        "    popq %rax\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    leaq 8(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp *-8(%rsp)\n"
        "    .cfi_endproc\n"
        ".size inject_rest, .-inject_rest\n"

        ".p2align 4\n"
        ".globl inject_loader\n"
        ".hidden inject_loader\n"
        ".type inject_loader, @function\n"
        "inject_loader:\n"
        "    .cfi_startproc\n"
        PUSH_REGISTERS
        "    andq $-16, %rsp\n"
        "    cld\n"
        "    call loader_has_changed\n"
        POP_REGISTERS
        "    ret\n"
        "    .cfi_endproc\n"
        ".size inject_loader, .-inject_loader\n");

#endif
