/* Loads libraries with probes, executes them in two threads, unloads them, again and again. It has probes of its own. */
#define _GNU_SOURCE
#include <perflaw.h>
#include <dlfcn.h>
#include <stdlib.h>

static void *thread(void *is) {
    void (*execute)(int);
    memcpy(&execute, &is, sizeof execute);
    execute(5);
    return NULL;
}

static void load(const char *name) {
    pthread_t other;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) abort();
    void *found = dlsym(library, "execute");
    pthread_create(&other, NULL, thread, found);
    pthread_join(other, NULL);
    thread(found);
    if (dlclose(library)) abort();
}

int main(int count, char **words) {
    for (int round = 0; round < 3; round++)
        for (int at = 1; at < count; at++) {
            SNAPSHOT_PROBE(30, 1, at);
            load(words[at]);
        }
    SNAPSHOT_PROBE(30, 1, count);
    return 0;
}
