/* Calls that a test counts: of two threads, of tracepoints, of a library that is loaded late. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "shop-tp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT __attribute__((noinline))
KEPT int leaf(int n) { return usleep(n), n; }
KEPT int work(int n) {
    lttng_ust_tracepoint(shop, pay_begin, n, 0.5 * n, "visa }, { \"vtid = 1, items = 9");
    int found = leaf(n) + leaf(2 * n);
    lttng_ust_tracepoint(shop, pay_end, found);
    return found;
}
KEPT int down(int n) { return n ? down(n - 1) : 0; }
static void *run(void *number) {
    for (int n = 1; n <= *(int *)number; n++) work(n);
    return NULL;
}
int main(int count, char **words) {
    int number = atoi(words[1]);
    pthread_t thread;
    lttng_ust_tracepoint(shop, started, number);
    pthread_create(&thread, NULL, run, &number);
    run(&number);
    pthread_join(thread, NULL);
    down(2);
    void *library = count > 2 ? dlopen(words[2], RTLD_NOW) : NULL;
    int (*late)(int) = library ? (int (*)(int))dlsym(library, "late") : NULL;
    if (late) late(3);
    return 0;
}
