/* Calls that end in unusual ways. Usage: jumps WAY [NUMBER]. Each way prints what it came to. */
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))
#define PLAIN __attribute__((no_instrument_function))
static jmp_buf back, middle;
static volatile long done;

APART void leaf(void) { done++; }

/* ---- longjmp ---- */

APART void jumper(int depth) {
    if (!depth) longjmp(back, 1);
    jumper(depth - 1);
    leaf();
}
APART void survivor(int depth) {
    if (!setjmp(back)) jumper(depth);
    leaf();
}
/* What is called where a jump has landed reaches deeper than what it left. */
APART void small(void) { longjmp(back, 1); }
APART void big(int at) {
    volatile char room[4096];
    room[at] = 1;
    done++;
}
APART void landing(int at) {
    if (!setjmp(back)) small();
    big(at);
}
/* Into the middle of a recursion that goes on from there. */
APART void nested(int depth) {
    if (depth == 3 && setjmp(middle)) {
        leaf();
        return;
    }
    if (!depth) longjmp(middle, 1);
    nested(depth - 1);
    leaf();
}
static PLAIN void from_nowhere(int times) {
    for (int at = 0; at < times; at++)
        if (!setjmp(back)) jumper(4);
}

/* ---- frames that change their size, calls that are jumps ---- */

APART void tail(int depth) {
    if (depth) tail(depth - 1);
    else leaf();
}
APART void roomy(int size) {
    volatile char *place = alloca((size_t)size);
    place[0] = 1;
    leaf();
    place[size - 1] = 2;
}
static inline __attribute__((always_inline)) void inlined(int times) {
    for (int at = 0; at < times; at++) leaf();
}
APART void outer(int times) { inlined(times); }
APART void seven(int a, int b, int c, int d, int e, int f, int g, int h) { done += a + b + c + d + e + f + g + h; }

/* ---- threads, processes, signals ---- */

static PLAIN void *work(void *times) {
    for (long at = 0; at < (long)times; at++) outer(2);
    return NULL;
}
static PLAIN void threads(long count, long times) {
    pthread_t made[64];
    for (long at = 0; at < count; at++) pthread_create(&made[at], NULL, work, (void *)times);
    for (long at = 0; at < count; at++) pthread_join(made[at], NULL);
}
APART void handler(int number) { done += number; }
static PLAIN void forks(int times) {
    outer(3);
    for (int at = 0; at < times; at++) {
        pid_t child = fork();
        if (!child) {
            outer(5 + at);
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
    outer(1);
}
static PLAIN void signals(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int at = 0; at < 200000; at++) leaf();
    setitimer(ITIMER_REAL, &never, NULL);
}
/* Handlers that leave for good whatever they interrupt, a hook as well. */
static sigjmp_buf out;
PLAIN void leaver(int number) { siglongjmp(out, number); }
APART void escape(void) {
    if (sigsetjmp(out, 1)) return;
    struct itimerval soon = {{0, 0}, {0, 50}};
    setitimer(ITIMER_REAL, &soon, NULL);
    for (;;) leaf();
}
static PLAIN void other_stack(void) {
    static char room[65536];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int at = 0; at < 10; at++) raise(SIGUSR1), leaf();
}
/* No descriptor is left, also for a thread that begins now. */
static PLAIN void greedy(int number) {
    leaf();
    struct rlimit few = {64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    while (open("/dev/null", O_RDONLY) >= 0) {}
    threads(1, number);
}

PLAIN int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    int number = count > 2 ? (int)strtol(words[2], NULL, 10) : 3; /* atoi may have hooks itself */
    if (!strcmp(way, "longjmp")) for (int at = 0; at < number; at++) survivor(at);
    if (!strcmp(way, "nested")) for (int at = 0; at < number; at++) nested(6);
    if (!strcmp(way, "nowhere")) from_nowhere(number), leaf();
    if (!strcmp(way, "landing")) for (int at = 0; at < number; at++) landing(at);
    if (!strcmp(way, "tail")) tail(number), leaf();
    if (!strcmp(way, "roomy")) for (int at = 0; at < number; at++) roomy(100 * at + 16);
    if (!strcmp(way, "inlined")) outer(number);
    if (!strcmp(way, "seven")) for (int at = 0; at < number; at++) seven(1, 2, 3, 4, 5, 6, 7, 8), leaf();
    if (!strcmp(way, "threads")) threads(8, number);
    if (!strcmp(way, "greedy")) greedy(number);
    if (!strcmp(way, "forks")) forks(number);
    if (!strcmp(way, "signals")) signals();
    if (!strcmp(way, "escape")) signal(SIGALRM, leaver);
    if (!strcmp(way, "escape")) for (int at = 0; at < number; at++) escape();
    if (!strcmp(way, "other_stack")) other_stack();
    if (!strcmp(way, "exit")) outer(number), exit(7);
    if (!strcmp(way, "_exit")) outer(number), _exit(0);
    if (!strcmp(way, "kill")) outer(number), raise(SIGKILL);
    if (!strcmp(way, "exec")) outer(number), execl(words[0], words[0], "inlined", "2", (char *)NULL);
    printf("%ld\n", done);
    return 0;
}
