/* Which functions are recorded, where the person chose some. Names are the recorder's matter: on first sight of a file
 * that code was loaded from it is asked for what it chose there, and answers with a file of places.
 *
 *     | Chosen | Place 0 | Place 1 | ...    by offset
 *
 * Threads: under known.c's lock. Cost: once a file some milliseconds, once a function and thread a search. */
#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x314c455346525046ull /* "FPRFSEL1" */
enum { MOST_MODULES = 256, ASK_EVERY_US = 200, ASK_FOR_US = 120000000 }; /* a large program has many names */

typedef struct Place {
    uint64_t offset; /* from where the file is loaded */
    uint32_t size, wanted;
} Place;
typedef struct Chosen {
    uint64_t magic, count;
    uint64_t others; /* whether functions that are not named are recorded */
    Place places[];
} Chosen;
typedef struct Module {
    const void *base;
    const Chosen *chosen;
} Module;

static Module modules[MOST_MODULES]; /* a forked child has the mappings too */
static int known_modules;

const char *module_of(const void *function, const void **base, char *room, size_t size) {
    Dl_info about = {0}, program = {0};
    int found = dladdr(function, &about);
    const char *name = found && about.dli_fname ? about.dli_fname : "";
    *base = about.dli_fbase;
    if (!found) return name;
    /* The program itself goes by the word that it was started with; and servers write their titles over it. */
    if (!dladdr((void *)getauxval(AT_ENTRY), &program) || program.dli_fbase != about.dli_fbase) return name;
    ssize_t length = readlink("/proc/self/exe", room, size - 1);
    if (length <= 0) return name;
    room[length] = 0;
    return room;
}

/* ---- asking ---- */

static uint64_t digest(const char *name) {
    uint64_t mixed = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *name; name++) mixed = (mixed ^ (unsigned char)*name) * 0x100000001b3ull;
    return mixed;
}

static const Chosen *answer(const char *path) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    void *data = fstat(file, &about) ? MAP_FAILED : mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (data == MAP_FAILED) return NULL;
    const Chosen *chosen = data;
    uint64_t room = ((uint64_t)about.st_size - sizeof *chosen) / sizeof(Place);
    return chosen->magic == MAGIC && chosen->count <= room ? chosen : NULL;
}

static int ask(const char *path, const char *name) {
    char part[sizeof hooks.spool + 64], whole[sizeof hooks.spool + 64];
    snprintf(part, sizeof part, "%s-%d.part", path, getpid());
    snprintf(whole, sizeof whole, "%s.ask", path);
    int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return 0;
    int done = write(file, name, strlen(name)) == (ssize_t)strlen(name);
    close(file);
    return done && !rename(part, whole);
}

static const Chosen *asked(const char *name) {
    char path[sizeof hooks.spool + 32];
    snprintf(path, sizeof path, "%s/chosen/%016llx", hooks.spool, (unsigned long long)digest(name));
    const Chosen *chosen = answer(path);
    if (chosen || !ask(path, name)) return chosen;
    for (int waited = 0; waited < ASK_FOR_US && !chosen; waited += ASK_EVERY_US) {
        if (hooks.recorder && kill(hooks.recorder, 0) && errno == ESRCH) return NULL;
        usleep(ASK_EVERY_US);
        chosen = answer(path);
    }
    return chosen;
}

/* ---- looking up ---- */

static const Chosen *chosen_of(const void *base, const char *name) {
    for (int at = 0; at < known_modules; at++)
        if (modules[at].base == base) return modules[at].chosen;
    const Chosen *chosen = asked(name);
    if (!chosen) process_stop("the recorder did not say which functions to record");
    else if (known_modules < MOST_MODULES) modules[known_modules++] = (Module){base, chosen};
    return chosen;
}

static const Place *place_at(const Chosen *chosen, uint64_t offset) {
    uint64_t low = 0, high = chosen->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (chosen->places[middle].offset < offset) low = middle + 1;
        else high = middle;
    }
    return low < chosen->count && chosen->places[low].offset == offset ? &chosen->places[low] : NULL;
}

int selected(const void *function, uint32_t *size) {
    char room[4096];
    const void *base;
    const char *name = module_of(function, &base, room, sizeof room);
    const Chosen *chosen = chosen_of(base, name);
    if (!chosen) return 0;
    const Place *place = place_at(chosen, (uint64_t)((const char *)function - (const char *)base));
    if (!place) return (int)chosen->others;
    *size = place->size;
    return (int)place->wanted;
}
