/* Opens and closes libraries of one source, plug.c, while threads run: plugs ROUNDS LIBRARY ... Each round every library is opened,
 * called, and closed, one after the other, so that they lie at the same place; meanwhile other threads do the same with the first
 * one, and throw nothing away that the others need. Says how many answers were wrong. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 3, CALLS = 10 };

typedef int (*Work)(int);

static const char *shared;
static int rounds, places_used_again;

/* Constructors of the libraries call it. */
__attribute__((noinline)) int plug_begins(int number) {
    static volatile int begun;
    begun += number;
    return number + 1;
}

__attribute__((noinline)) static int plug_calls(Work work, int answer) {
    int wrong = 0;
    for (int at = 0; at < CALLS; at++) wrong += work(at) != at * answer;
    return wrong;
}

static int open_and_close(const char *path, void **place) {
    struct link_map *library = dlopen(path, RTLD_NOW);
    if (!library) {
        puts(dlerror());
        return 1;
    }
    int wrong = plug_calls((Work)dlsym(library, "plug_work"), *(int *)dlsym(library, "plug_answer"));
    if (place) {
        places_used_again += *place == (void *)library->l_addr;
        *place = (void *)library->l_addr;
    }
    return wrong + (dlclose(library) != 0);
}

static void *reopen(void *unused) {
    long wrong = 0;
    for (int round = 0; round < rounds; round++) wrong += open_and_close(shared, NULL);
    return (void *)wrong;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    void *result, *place = NULL;
    long wrong = 0;
    alarm(120);
    rounds = atoi(words[1]);
    for (int round = 0; round < rounds; round++)
        for (int at = 2; at < count; at++) wrong += open_and_close(words[at], &place);
    shared = words[2];
    for (int at = 0; at < THREADS; at++) wrong += pthread_create(&threads[at], NULL, reopen, NULL);
    for (int at = 0; at < THREADS; at++) wrong += pthread_join(threads[at], &result) || result;
    printf("%ld wrong, %s\n", wrong, places_used_again ? "places were used again" : "every library had a place of its own");
    return wrong != 0;
}
