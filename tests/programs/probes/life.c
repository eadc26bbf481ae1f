/* Probes in all situations of a process's life, by name; what is printed says how many records were asked for. */
#define _GNU_SOURCE
#include <perflaw.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void snap(int times) {
    for (int at = 0; at < times; at++) SNAPSHOT_PROBE(1, 1, at);
}

static void *thread(void *times) {
    snap((int)(long)times);
    for (int at = 0; at < 5; at++) {
        CNT_PROBE_BEGIN(2, 3);
        CNT_PROBE_END(2);
    }
    return NULL;
}

/* `many` threads of 10 records each, `together` at a time. */
static void threads(int many, int together) {
    pthread_t running[64];
    for (int done = 0; done < many; done += together) {
        for (int at = 0; at < together; at++) pthread_create(&running[at], NULL, thread, (void *)10L);
        for (int at = 0; at < together; at++) pthread_join(running[at], NULL);
    }
}

static void children(int bare) {
    snap(3);
    int child = bare ? (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (!child) {
        snap(5);
        int grandchild = fork();
        if (!grandchild) snap(7), _exit(0);
        waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    snap(3);
}

static void shared_memory_child(void) {
    snap(3);
    int child = vfork();
    if (!child) {
        snap(2); /* what only a child of vfork can do: in its parent's memory */
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    snap(3);
}

static void handler(int number) {
    (void)number;
    handled++;
    SNAPSHOT_PROBE(3, 1, handled);
}

static int over;
static void *disturb(void *whom) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) pthread_kill(*(pthread_t *)whom, SIGUSR1), usleep(20);
    return NULL;
}

/* One signal after the other while records are written. */
static void signals(int times) {
    pthread_t disturbing, self = pthread_self();
    signal(SIGUSR1, handler);
    pthread_create(&disturbing, NULL, disturb, &self);
    snap(times);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(disturbing, NULL);
    printf("%d\n", times + (int)handled);
}

/* A handler's probe exactly while a record is being written: the clock is read within. */
#if defined(PERFLAW_CLOCK_NS)
int clock_gettime(clockid_t clock, struct timespec *at) {
    if (handled == -1) handled = 0, raise(SIGUSR1);
    return (int)syscall(SYS_clock_gettime, clock, at);
}
#endif
static void nested(void) {
    signal(SIGUSR1, handler);
    snap(2);
    handled = -1;
    snap(2);
}

static void late(void) { snap(4); }

/* Before the probes have made ready. */
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
__attribute__((constructor(100))) static void early(void) {
    if (getenv("EARLY")) snap(6);
}

static void *keeps_errno(void *nothing) {
    errno = 77;
    snap(1);
    FLT_PROBE_BEGIN(4, 1);
    FLT_PROBE_END(4);
    LLC_PROBE_BEGIN(5, 1);
    LLC_PROBE_END(5);
    printf("%d\n", errno);
    return nothing;
}

/* Five records after each line that is read. */
static void on_demand(void) {
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        for (int at = 0; at < 6; at++) {
            TPT_PROBE_BEGIN(6, 1);
            TPT_PROBE_END(6);
        }
        puts("done");
        fflush(stdout);
    }
}

int main(int count, char **words) {
    int number = count > 2 ? atoi(words[2]) : 0;
    switch (words[1][0]) {
    case 't': threads(number, atoi(words[3])); break;
    case 'f': children(0); break;
    case 'b': children(1); break;
    case 'v': shared_memory_child(); break;
    case 's': signals(number); break;
    case 'a': atexit(late), snap(3); break;
    case 'k': snap(number), kill(getpid(), SIGKILL); break;
    case 'e': keeps_errno(NULL); break;
    case 'd': on_demand(); break;
    case 'x': snap(3), execl(words[0], words[0], "a", (char *)NULL); break;
    case 'n': nested(); break;
    case '-': break;
    }
    return 0;
}
