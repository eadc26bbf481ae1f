/* Calls with pointers that lead nowhere: null, wild, freed, unmapped, at the end of a page, into themselves. Usage: hostile CALLS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PLAIN __attribute__((no_instrument_function))
#define APART __attribute__((noinline))

struct link { struct link *next; const char *name; int values[16]; };
static volatile long done;

APART void hostile(const struct link *chain, const char *text, const int *number, struct link *const *table) {
    done += (chain != NULL) + (text != NULL) + (number != NULL) + (table != NULL);
}

PLAIN int main(int count, char **words) {
    long calls = count > 1 ? atol(words[1]) : 1000, page = 4096;
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 1;
    memset(pages, 'x', page); /* a text without an end: the next page is gone */
    munmap(pages + page, page);
    mprotect(pages + 2 * page, page, PROT_NONE);
    struct link own = {&own, (const char *)-1, {0}};
    uint64_t state = 1;
    for (long at = 0; at < calls; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        struct link *freed = malloc(sizeof *freed);
        uintptr_t address[] = {
            0, 1, 4095, 4096, UINTPTR_MAX, UINTPTR_MAX - 7, (uintptr_t)1 << 47, state, state >> 17, state >> 40,
            (uintptr_t)freed, (uintptr_t)pages, (uintptr_t)(pages + page - 1), (uintptr_t)(pages + page),
            (uintptr_t)(pages + 2 * page), (uintptr_t)&own, (uintptr_t)&at + 65536 * (state >> 56), (uintptr_t)main,
        };
        enum { KINDS = sizeof address / sizeof *address };
        free(freed);
        hostile((void *)address[at % KINDS], (void *)address[(state >> 33) % KINDS], (void *)address[(state >> 23) % KINDS],
                (void *)address[(state >> 13) % KINDS]);
    }
    printf("%ld\n", calls);
    return 0;
}
