/* A program whose probes' counts are known: THREADS threads one after the other or at once, each with CALLS calls of a
 * span with a snapshot in it, in PROCESSES processes; "wait" as the last argument: then sleep until killed. */
#include <perflaw.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

PERFLAW_PROBE(7, "query", "");
PERFLAW_PROBE(8, "work", "rows");
PERFLAW_PROBE(9, "thread", "");

static int calls;

static void *run(void *nothing) {
    (void)nothing;
    LAT_PROBE_BEGIN(9, 1);
    for (int call = 0; call < calls; call++) {
        LAT_PROBE_BEGIN(7, 1);
        SNAPSHOT_PROBE(8, 1, (uint64_t)call);
        LAT_PROBE_END(7);
    }
    LAT_PROBE_END(9);
    return NULL;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    int processes = atoi(words[1]), threads = atoi(words[2]), at_once = count > 4 && !strcmp(words[4], "together");
    calls = atoi(words[3]);
    for (int process = 1; process < processes; process++)
        if (!fork()) break;
    pthread_t all[64];
    for (int thread = 0; thread < threads; thread++) {
        pthread_create(&all[thread], NULL, run, NULL);
        if (!at_once) pthread_join(all[thread], NULL);
    }
    for (int thread = 0; at_once && thread < threads; thread++) pthread_join(all[thread], NULL);
    while (wait(NULL) > 0) continue;
    if (strcmp(words[count - 1], "wait")) return 0;
    puts("done");
    fflush(stdout);
    pause();
}
