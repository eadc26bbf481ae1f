/* A program that may do little, in the way that its argument names, until its standard input ends. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Allow what the program itself needs; all else has this answer. */
static void forbid(unsigned answer) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_poll), ALLOW(SYS_exit_group), ALLOW(SYS_restart_syscall),
        ALLOW(SYS_mmap), ALLOW(SYS_munmap), BPF_STMT(BPF_RET | BPF_K, answer),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program)) perror("seccomp");
}

static void limit(int what, rlim_t bytes) {
    struct rlimit limits = {bytes, bytes};
    if (setrlimit(what, &limits)) perror("setrlimit");
}

static void *sleeping(void *unused) {
    for (;;) sleep(1);
    return unused;
}

__attribute__((noipa)) unsigned long leaf(unsigned long n) {
    unsigned long sum = n;
    for (unsigned long at = 0; at < n; at++) sum = sum * 31 + at;
    return sum;
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    pthread_t thread;
    struct pollfd end = {.fd = 0, .events = POLLIN};
    unsigned long first = leaf(1000), wrong = 0;
    printf("ready\n");
    fflush(stdout);
    if (!strcmp(way, "thread")) pthread_create(&thread, NULL, sleeping, NULL);
    if (!strcmp(way, "killed")) forbid(SECCOMP_RET_KILL_PROCESS);
    if (!strcmp(way, "trapped")) forbid(SECCOMP_RET_TRAP);
    if (!strcmp(way, "refused")) forbid(SECCOMP_RET_ERRNO | 1);
    if (!strcmp(way, "no new code") && prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0)) perror("mdwe");
    if (!strcmp(way, "small files")) limit(RLIMIT_FSIZE, 1000);
    if (!strcmp(way, "little memory")) limit(RLIMIT_AS, 40 << 20);
    while (!poll(&end, 1, 1)) wrong += leaf(1000) != first;
    printf("%lu wrong\n", wrong);
    return 0;
}
