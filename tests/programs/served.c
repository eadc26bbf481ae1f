/* A service as those that begin as root: a worker of another user answers lines, its size each, with their sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned long answer(unsigned long size) {
    unsigned long sum = 0;
    for (unsigned long at = 1; at <= size; at++) {
        sum += at;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

int main(int count, char **words) {
    unsigned user = (unsigned)atoi(words[count - 1]);
    pid_t worker = fork();
    if (worker) {
        int status;
        waitpid(worker, &status, 0);
        return WEXITSTATUS(status);
    }
    struct rlimit none = {0, 0};
    int is_alone = count > 2 && !strcmp(words[1], "alone"); /* as haproxy, it creates no process and no thread any more */
    if (is_alone ? setrlimit(RLIMIT_NPROC, &none) : count > 2 && chroot(words[1])) return 3;
    if (setgid(user) || setuid(user)) return 2;
    printf("%d\n", getpid());
    fflush(stdout);
    for (unsigned long size; scanf("%lu", &size) == 1;) {
        printf("%lu\n", answer(size));
        fflush(stdout);
    }
    return 0;
}
