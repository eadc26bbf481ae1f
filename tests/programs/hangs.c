/* Works, says so, and hangs: hangs deadlock|read|spin|threads|deaf|counts. Where it is deaf, no signal but SIGKILL reaches it. It
 * counts for 2.5 s how often it is interrupted. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) int leaf(int number) {
    static volatile int sum;
    sum += number;
    return sum;
}

__attribute__((noinline)) static int work(int number) {
    int sum = 0;
    for (int at = 0; at < number; at++) sum += leaf(at);
    return sum;
}

static void *spin(void *unused) {
    for (volatile int goes_on = 1; goes_on;) work(100);
    return unused;
}

static volatile int interrupts;

static void interrupted(int number) { interrupts += number == SIGINT; }

int main(int count, char **words) {
    const char *how = words[count - 1];
    char byte;
    int ends[2];
    pthread_t thread;
    sigset_t all;
    alarm(60);
    int sum = work(1000);
    if (!strcmp(how, "counts")) signal(SIGINT, interrupted);
    puts("hangs");
    fflush(stdout);
    if (!strcmp(how, "deadlock")) pthread_mutex_lock(&lock), pthread_mutex_lock(&lock);
    if (!strcmp(how, "read") && !pipe(ends)) return (int)read(ends[0], &byte, 1) + sum;
    if (!strcmp(how, "spin")) spin(NULL);
    if (!strcmp(how, "counts")) {
        for (int at = 0; at < 25; at++) usleep(100000);
        return printf("%d interrupts\n", interrupts) < 0;
    }
    if (!strcmp(how, "deaf")) {
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        while (1) sleep(1);
    }
    pthread_create(&thread, NULL, spin, NULL);
    pthread_join(thread, NULL);
}
