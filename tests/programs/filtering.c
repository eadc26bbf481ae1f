/* Calls leaf and second; between them it installs a filter of system calls (seccomp) that answers all but a few as its argument says. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

__attribute__((no_instrument_function)) static void forbid(unsigned answer) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_fstat), ALLOW(SYS_newfstatat),
        ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_brk), ALLOW(SYS_getrandom), BPF_STMT(BPF_RET | BPF_K, answer),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) perror("seccomp");
}

__attribute__((noipa)) unsigned long leaf(unsigned long n) {
    unsigned long sum = n;
    for (unsigned long at = 0; at < 100; at++) sum = sum * 31 + at;
    return sum;
}

__attribute__((noipa)) unsigned long second(unsigned long n) { return leaf(n) + leaf(n + 1); }

int main(int count, char **words) {
    const char *way = words[count - 1];
    unsigned long sum = 0;
    for (int number = 0; number < 1000; number++) sum += leaf(number);
    if (!strcmp(way, "killed")) forbid(SECCOMP_RET_KILL_PROCESS);
    if (!strcmp(way, "trapped")) forbid(SECCOMP_RET_TRAP);
    if (!strcmp(way, "refused")) forbid(SECCOMP_RET_ERRNO | 1);
    if (!strcmp(way, "strict")) prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (int number = 0; number < 10000; number++) sum += second(number);
    char text[32];
    int length = snprintf(text, sizeof text, "%lu\n", sum);
    syscall(SYS_write, 1, text, length);
    if (strcmp(way, "free")) syscall(SYS_exit, 0); /* all that the strict mode allows */
    return 0;
}
