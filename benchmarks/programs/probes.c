/* What a pair of each probe costs: `probes THREADS ROUNDS` prints "name cycles" for the thread that pays most, then the
 * length of a cycle. A round is a few hundred pairs, so that some of many rounds are disturbed by nobody: the least is told,
 * less that of the empty loop. */
#define _GNU_SOURCE
#include <perflaw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAIRS = 200, MOST_THREADS = 16 };
#define NOTHING __asm__ volatile("" ::: "memory") /* what is enclosed: the compiler must not put it elsewhere */
#define LOOP(name, ...)                                           \
    static __attribute__((noinline)) uint64_t name(void) {        \
        uint64_t began = perflaw_now();                           \
        for (int at = 0; at < PAIRS; at++) { __VA_ARGS__; }       \
        return perflaw_now() - began;                             \
    }

LOOP(empty, NOTHING)
LOOP(two_rdtsc, (void)perflaw_now(); NOTHING; (void)perflaw_now())
LOOP(two_getrusage, struct rusage use; syscall(SYS_getrusage, 1L, &use); NOTHING; syscall(SYS_getrusage, 1L, &use))
LOOP(disabled, LAT_PROBE_BEGIN(100, 1); NOTHING; LAT_PROBE_END(100))
LOOP(cnt, CNT_PROBE_BEGIN(1, 1); NOTHING; CNT_PROBE_END(1))
LOOP(cnt_100, CNT_PROBE_BEGIN(11, 100); NOTHING; CNT_PROBE_END(11))
LOOP(lat, LAT_PROBE_BEGIN(2, 1); NOTHING; LAT_PROBE_END(2))
LOOP(lat_100, LAT_PROBE_BEGIN(12, 100); NOTHING; LAT_PROBE_END(12))
LOOP(tpt, TPT_PROBE_BEGIN(3, 1); NOTHING; TPT_PROBE_END(3))
LOOP(llc, LLC_PROBE_BEGIN(4, 1); NOTHING; LLC_PROBE_END(4))
LOOP(flt, FLT_PROBE_BEGIN(5, 1); NOTHING; FLT_PROBE_END(5))
LOOP(flt_100, FLT_PROBE_BEGIN(15, 100); NOTHING; FLT_PROBE_END(15))
LOOP(ctxsw, CTXSW_PROBE_BEGIN(6, 1); NOTHING; CTXSW_PROBE_END(6))
LOOP(perfcntr, PERFCNTR_PROBE_BEGIN(7, 1, 0); NOTHING; PERFCNTR_PROBE_END(7))
LOOP(snapshot, SNAPSHOT_PROBE(8, 1, at, at, at, at, at, at))

static const struct {
    const char *name;
    uint64_t (*run)(void);
} LOOPS[] = {{"empty", empty}, {"two_rdtsc", two_rdtsc}, {"two_getrusage", two_getrusage}, {"disabled", disabled},
             {"CNT", cnt}, {"CNT_100", cnt_100}, {"LAT", lat}, {"LAT_100", lat_100}, {"TPT", tpt}, {"LLC", llc},
             {"FLT", flt}, {"FLT_100", flt_100}, {"CTXSW", ctxsw}, {"PERFCNTR", perfcntr}, {"SNAPSHOT", snapshot}};
enum { COUNT = sizeof LOOPS / sizeof LOOPS[0] };
static uint64_t least[MOST_THREADS][COUNT];
static int rounds;
static pthread_barrier_t together;

static void *measure(void *is) {
    long number = (long)is;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((int)number % (int)sysconf(_SC_NPROCESSORS_ONLN), &one);
    sched_setaffinity(0, sizeof one, &one); /* where it may not be, the threads are where the kernel puts them */
    for (int loop = 0; loop < COUNT; loop++) least[number][loop] = UINT64_MAX;
    pthread_barrier_wait(&together);
    for (int round = 0; round < rounds; round++)
        for (int loop = 0; loop < COUNT; loop++) {
            uint64_t took = LOOPS[loop].run();
            if (took < least[number][loop]) least[number][loop] = took;
        }
    return NULL;
}

int main(int count, char **words) {
    int threads = count > 2 ? atoi(words[1]) : 1;
    pthread_t running[MOST_THREADS];
    uint64_t ticks[2] = {0, 0};
    int64_t ns[2] = {0, 0};
    rounds = count > 2 ? atoi(words[2]) : 100;
    SET_PERFCNTR(0, 0x2e, 0x41);
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    perflaw_pair_of_clocks(&ticks[0], &ns[0]);
    for (long at = 0; at < threads; at++) pthread_create(&running[at], NULL, measure, (void *)at);
    for (int at = 0; at < threads; at++) pthread_join(running[at], NULL);
    perflaw_pair_of_clocks(&ticks[1], &ns[1]);
    for (int loop = 1; loop < COUNT; loop++) {
        double most = 0;
        for (int at = 0; at < threads; at++) {
            double cycles = ((double)least[at][loop] - (double)least[at][0]) / PAIRS;
            if (cycles > most) most = cycles;
        }
        printf("%s %.2f\n", LOOPS[loop].name, most);
    }
    printf("ns %.6f\n", (double)(ns[1] - ns[0]) / (double)(ticks[1] - ticks[0]));
    return 0;
}
