#include "filters.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- what a filter answers ---- */

enum { MACHINE = 0xC000003E /* AUDIT_ARCH_X86_64 */, MEMORY = 16, MOST = 4096 /* BPF_MAXINSNS */ };

static uint32_t calculated(uint16_t operation, uint32_t a, uint32_t operand) {
    switch (operation) {
    case BPF_ADD: return a + operand;
    case BPF_SUB: return a - operand;
    case BPF_MUL: return a * operand;
    case BPF_DIV: return operand ? a / operand : 0;
    case BPF_OR: return a | operand;
    case BPF_AND: return a & operand;
    case BPF_LSH: return a << (operand & 31);
    case BPF_RSH: return a >> (operand & 31);
    case BPF_XOR: return a ^ operand;
    default: return -a;
    }
}

static int holds(uint16_t test, uint32_t a, uint32_t operand) {
    if (test == BPF_JEQ) return a == operand;
    if (test == BPF_JGT) return a > operand;
    return test == BPF_JGE ? a >= operand : (a & operand) != 0;
}

uint32_t filter_action(const FilterInstruction *program, size_t count, int number, const uint64_t arguments[6]) {
    struct seccomp_data data = {.nr = number, .arch = MACHINE};
    uint32_t memory[MEMORY] = {0}, a = 0, x = 0;
    memcpy(data.args, arguments, sizeof data.args);
    for (size_t at = 0; at < count; at++) { /* jumps lead forwards only */
        FilterInstruction now = program[at];
        uint32_t operand = BPF_SRC(now.code) == BPF_X ? x : now.constant, value = now.constant;
        switch (BPF_CLASS(now.code)) {
        case BPF_LD:
        case BPF_LDX:
            if (BPF_MODE(now.code) == BPF_MEM) value = memory[now.constant % MEMORY];
            if (BPF_MODE(now.code) == BPF_LEN) value = sizeof data;
            if (BPF_MODE(now.code) == BPF_ABS && now.constant <= sizeof data - sizeof value)
                memcpy(&value, (char *)&data + now.constant, sizeof value);
            *(BPF_CLASS(now.code) == BPF_LD ? &a : &x) = value;
            break;
        case BPF_ST: memory[now.constant % MEMORY] = a; break;
        case BPF_STX: memory[now.constant % MEMORY] = x; break;
        case BPF_ALU: a = calculated(BPF_OP(now.code), a, operand); break;
        case BPF_JMP:
            at += BPF_OP(now.code) == BPF_JA ? now.constant : holds(BPF_OP(now.code), a, operand) ? now.if_true : now.if_false;
            break;
        case BPF_RET: return (BPF_RVAL(now.code) == BPF_A ? a : now.constant) & SECCOMP_RET_ACTION_FULL;
        default: *(BPF_MISCOP(now.code) == BPF_TXA ? &a : &x) = BPF_MISCOP(now.code) == BPF_TXA ? x : a;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

/* System calls that a recording makes in a process, with typical arguments. */
static const struct {
    const char *name;
    int number;
    uint64_t arguments[6];
} calls[] = {
    /* What creates a thread, loads a library, and makes code executable. */
    {"mmap", 9, {0, 1 << 22, 3, 0x22}}, {"mmap", 9, {0, 1 << 22, 5, 2, 3}}, {"mprotect", 10, {0, 4096, 5}}, {"munmap", 11, {0}},
    {"madvise", 28, {0}}, {"brk", 12, {0}}, {"clone3", 435, {0}}, {"clone", 56, {0x3D0F00}}, {"set_robust_list", 273, {0}},
    {"rseq", 334, {0}}, {"futex", 202, {0}}, {"rt_sigprocmask", 14, {0}}, {"exit", 60, {0}}, {"membarrier", 324, {0}},
    {"getrandom", 318, {0}}, {"sysinfo", 99, {0}}, {"sched_getaffinity", 204, {0}}, {"prlimit64", 302, {0}},
    /* What reads and writes the files of the recording, and of the libraries. */
    {"openat", 257, {0xFFFFFF9C, 0, 0x80042}}, {"close", 3, {0}}, {"read", 0, {0}}, {"pread64", 17, {0}}, {"write", 1, {0}},
    {"lseek", 8, {0}}, {"fstat", 5, {0}}, {"newfstatat", 262, {0}}, {"readlink", 89, {0}}, {"rename", 82, {0}},
    {"unlink", 87, {0}}, {"mkdir", 83, {0}}, {"fallocate", 285, {0}}, {"flock", 73, {0}},
    /* What measures and waits. */
    {"clock_gettime", 228, {0}}, {"clock_nanosleep", 230, {0}}, {"process_vm_readv", 310, {0}}, {"getpid", 39, {0}},
    {"getppid", 110, {0}}, {"gettid", 186, {0}}, {"kill", 62, {0}}, {"getrusage", 98, {0}},
};

/* Whether an action ends the process or thread, or sends SIGSYS, which ends it unless it has a handler. */
static int ends(uint32_t action) {
    return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD || action == SECCOMP_RET_TRAP;
}

const char *filter_obstacle(const FilterInstruction *program, size_t count) {
    for (size_t at = 0; at < sizeof calls / sizeof *calls; at++)
        if (ends(filter_action(program, count, calls[at].number, calls[at].arguments))) return calls[at].name;
    return NULL;
}

/* ---- a program that installs one ---- */

#if defined(__x86_64__) && defined(__GLIBC__)

static void (*leave)(const char *why);
static int opens_files;
static char reason[160];

static void leave_for(const char *words, const char *name) {
    snprintf(reason, sizeof reason, "the program's filter of system calls (seccomp) %s%s", words, name);
    leave(reason);
}

/* The kernel copies what may not be there. */
static int copy(void *to, const void *from, size_t size) {
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};
    return syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

static void look(const struct sock_fprog *given) {
    static FilterInstruction program[MOST]; /* two threads that install filters at once are not told apart */
    struct sock_fprog filter;
    int error = errno;
    if (copy(&filter, given, sizeof filter) && filter.len <= MOST &&
        copy(program, filter.filter, filter.len * sizeof *program)) {
        static const uint64_t OPENING[6] = {0xFFFFFF9C, 0, 0x80042}, READING[6] = {CLOCK_THREAD_CPUTIME_ID};
        const char *name = filter_obstacle(program, filter.len);
        if (name) leave_for("would end it for a call that a recording makes, ", name);
        else if (opens_files && filter_action(program, filter.len, SYS_openat, OPENING) == SECCOMP_RET_ERRNO)
            leave_for("lets it open no files, which a recording does", "");
        else if (filter_action(program, filter.len, SYS_clock_gettime, READING) == SECCOMP_RET_ERRNO)
            leave_for("lets it read no clocks, which a recording does", "");
    }
    errno = error;
}

/* Declared for the code below, which calls them. */
void filters_look_at_call(long number, long first, long second, long third);
long filters_failed(long result);

static void look_at_prctl(long option, long mode, long program) {
    if (option != PR_SET_SECCOMP) return;
    if (mode == SECCOMP_MODE_STRICT) leave_for("allows nothing but reading and writing", "");
    if (mode == SECCOMP_MODE_FILTER) look((const struct sock_fprog *)program);
}

__attribute__((used, visibility("hidden"))) void filters_look_at_call(long number, long first, long second, long third) {
    if (number == SYS_prctl) look_at_prctl(first, second, third);
    if (number == SYS_seccomp && first == SECCOMP_SET_MODE_STRICT) look_at_prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0);
    if (number == SYS_seccomp && first == SECCOMP_SET_MODE_FILTER) look((const struct sock_fprog *)third);
}

__attribute__((used, visibility("hidden"))) long filters_failed(long result) {
    errno = (int)-result;
    return -1;
}

/* The C library's `syscall`, which looks at two numbers first. It has no frame of its own, because a system call may return
 * twice, or on another stack. */
long filters_syscall(long number, ...) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden filters_syscall\n"
        ".globl filters_syscall\n"
        ".type filters_syscall, @function\n"
        "filters_syscall:\n"
        "    cmp $317, %rdi\n" /* SYS_seccomp */
        "    je 2f\n"
        "    cmp $157, %rdi\n" /* SYS_prctl */
        "    je 2f\n"
        "1:  mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    mov %rcx, %rdx\n"
        "    mov %r8, %r10\n"
        "    mov %r9, %r8\n"
        "    mov 8(%rsp), %r9\n"
        "    syscall\n"
        "    cmp $-4095, %rax\n"
        "    jae 3f\n"
        "    ret\n"
        "2:  push %rdi\n"
        "    push %rsi\n"
        "    push %rdx\n"
        "    push %rcx\n"
        "    push %r8\n"
        "    push %r9\n"
        "    sub $8, %rsp\n"
        "    call filters_look_at_call\n"
        "    add $8, %rsp\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rcx\n"
        "    pop %rdx\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    jmp 1b\n"
        "3:  mov %rax, %rdi\n"
        "    jmp filters_failed\n"
        ".size filters_syscall, . - filters_syscall\n");

static int watched_prctl(int option, long first, long second, long third, long fourth) {
    look_at_prctl(option, first, second);
    return (int)filters_syscall(SYS_prctl, option, first, second, third, fourth);
}

/* Lead a function of the C library to another one, or leave it where that cannot be. The kernel writes, because some services may have no memory that can be both
 * written and executed. */
static void lead(int memory, void *library, const char *name, const void *to) {
    static const unsigned char MARK[] = {0xf3, 0x0f, 0x1e, 0xfa}, JUMP[] = {0xff, 0x25, 0, 0, 0, 0}; /* endbr64; jmp *(%rip) */
    char *function = dlsym(library, name), jump[sizeof JUMP + sizeof to];
    if (!function) return;
    if (!memcmp(function, MARK, sizeof MARK)) function += sizeof MARK;
    memcpy(jump, JUMP, sizeof JUMP);
    memcpy(jump + sizeof JUMP, &to, sizeof to);
    if (pwrite(memory, jump, sizeof jump, (off_t)(uintptr_t)function) < 0) return;
}

void filters_watch(void (*when)(const char *why), int needs_files) {
    if (leave) return;
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    int memory = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    leave = when;
    opens_files = needs_files;
    if (library && memory >= 0) {
        lead(memory, library, "prctl", (const void *)watched_prctl);
        lead(memory, library, "syscall", (const void *)filters_syscall);
    }
    if (memory >= 0) close(memory);
    if (library) dlclose(library);
}

#else

void filters_watch(void (*when)(const char *why), int needs_files) { (void)when, (void)needs_files; }

#endif
