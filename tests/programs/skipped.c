/* A function that is selected calls others that are not. Usage: skipped CALLS [threads]: a second thread waits meanwhile. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

static volatile unsigned sum;
static pthread_mutex_t waiting = PTHREAD_MUTEX_INITIALIZER;

static inline __attribute__((always_inline)) void add(unsigned i) { sum += i; }

/* Its two ends are each a call of the exit hook. */
APART unsigned odd(unsigned i) {
    if (i % 2) return sum += 1;
    add(i);
    return sum;
}

/* Its end may be a jump to the exit hook. */
APART void last(unsigned i) { sum ^= i; }

/* It calls itself, and may end by a jump. */
APART void down(unsigned i) {
    if (i) down(i - 1);
    last(i);
}

APART unsigned work(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        last(odd(i));
        down(i % 3);
    }
    return sum;
}

static void *wait(void *unused) {
    pthread_mutex_lock(&waiting);
    return unused;
}

int main(int count, char **words) {
    pthread_t other;
    pthread_mutex_lock(&waiting);
    if (count > 2) pthread_create(&other, NULL, wait, NULL);
    for (int at = 0; at < 5; at++) printf("%u\n", work((unsigned)atoi(words[1])));
    return 0;
}
