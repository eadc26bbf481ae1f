/* Calls on one CPU that know what they spend there: `./queueing CPU CALLS`. Each spends a millisecond on the CPU, and calls a function that
 * was not called before; the last line is the CPU time of all of them, in ns. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define FIRST(n) __attribute__((noinline)) void first##n(void) { __asm__ volatile(""); }
FIRST(0) FIRST(1) FIRST(2) FIRST(3) FIRST(4) FIRST(5) FIRST(6) FIRST(7) FIRST(8) FIRST(9)
static void (*const firsts[])(void) = {first0, first1, first2, first3, first4, first5, first6, first7, first8, first9};
static long all;

PLAIN static long spent(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((noinline)) void work(const int *number) {
    long begin = spent();
    while (spent() - begin < 1000000) continue;
    if (*number % 20 == 0) firsts[*number / 20 % 10]();
    all += spent() - begin;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(atoi(words[1]), &only);
    sched_setaffinity(0, sizeof only, &only);
    for (int number = 0; number < atoi(words[2]); number++) work(&number);
    printf("%ld\n", all);
}
