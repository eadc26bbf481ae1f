/* Threads begin and end, children are forked and started, while this is attached to: restless WAY, `threads`, `children` or
 * `exec`. Until standard input ends it does that again and again, checking every result. `exec`: it then becomes itself, as
 * `after`, which prints what was wrong likewise. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
extern char **environ;

APART long leaf(long number) { return number * 3 + 1; }
APART long work(long number) {
    long sum = 0;
    for (long at = 0; at < 100; at++) sum += leaf(number + at);
    return sum;
}
APART int is_wrong(long number) { return work(number) != 300 * number + 3 * 4950 + 100; }

static void *short_life(void *number) { return (void *)(long)is_wrong((long)number); }

static int threads(long round) {
    pthread_t made[4];
    long wrong = 0;
    for (long at = 0; at < 4; at++) pthread_create(&made[at], NULL, short_life, (void *)(round + at));
    for (long at = 0; at < 4; at++) {
        void *found;
        pthread_join(made[at], &found);
        wrong += (long)found;
    }
    return (int)wrong;
}

static int status_of(pid_t child) {
    int status = 1;
    return waitpid(child, &status, 0) != child || status;
}

static int children(long round) {
    char *words[] = {"true", NULL};
    int wrong = is_wrong(round);
    pid_t child = fork();
    if (!child) _exit(is_wrong(round + 1) || is_wrong(round + 2));
    wrong += status_of(child);
    child = vfork();
    if (!child) {
        if (leaf(round) != round * 3 + 1) _exit(1);
        execv("/bin/true", words);
        _exit(1);
    }
    wrong += status_of(child);
    return wrong + (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) || status_of(child));
}

int main(int count, char **words) {
    const char *way = count == 2 ? words[1] : "";
    char line[64];
    int wrong = 0, is_over = 0;
    alarm(120);
    puts("ready");
    fflush(stdout);
    for (long round = 0; !is_over; round++) {
        wrong += !strcmp(way, "threads") ? threads(round) : !strcmp(way, "children") ? children(round) : is_wrong(round);
        usleep(strcmp(way, "children") ? 500 : 20000);
        struct timeval none = {0};
        fd_set input;
        FD_ZERO(&input);
        FD_SET(0, &input);
        is_over = select(1, &input, NULL, NULL, &none) > 0 && read(0, line, sizeof line) <= 0;
        if (!is_over && FD_ISSET(0, &input) && !strcmp(way, "exec")) execl("/proc/self/exe", words[0], "after", NULL);
    }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
