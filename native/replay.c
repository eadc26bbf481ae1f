/* Drives the core from recorded events, and shows what an arena holds.
 *
 *     replay run  [--seed N] [--distance N] ARENA THREAD:FILE...   one file of records after the other
 *     replay dump ARENA                                           as text, see dump.h
 *     replay layout                                               fields of a record: name, offset, bytes
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calltree.h"
#include "dump.h"

enum { BATCH = 4096 };
static const uint64_t LIMIT = 1ull << 33;

static int fail(const char *what, const char *which, const char *why) {
    fprintf(stderr, "replay: %s %s: %s\n", what, which, why);
    return 1;
}

/* Feed the records of THREAD:FILE; a torn last record is left out. */
static int feed(Arena *arena, const char *source) {
    static Event events[BATCH]; /* the program's only static storage: too large for the stack's taste */
    char *path;
    Thread *thread = calltree_thread(arena, strtoll(source, &path, 10));
    FILE *file = *path == ':' ? fopen(path + 1, "rb") : NULL;
    if (!file) return fail("cannot read", source, "want THREAD:FILE");
    size_t count;
    while ((count = fread(events, sizeof(Event), BATCH, file)))
        for (size_t at = 0; at < count; at++) calltree_feed(arena, thread, &events[at]);
    fclose(file);
    return 0;
}

static int run(int count, char **words) {
    uint64_t seed = 0, distance = MAX_DISTANCE;
    for (; count > 2 && words[0][0] == '-'; count -= 2, words += 2) {
        if (!strcmp(words[0], "--seed")) seed = strtoull(words[1], NULL, 10);
        else if (!strcmp(words[0], "--distance")) distance = strtoull(words[1], NULL, 10);
        else return fail("unknown option", words[0], "see the head of replay.c");
    }
    Arena arena;
    int error = arena_create(&arena, words[0], LIMIT);
    if (!error) error = calltree_begin(&arena, seed, (uint32_t)distance);
    if (error) return fail("cannot create", words[0], strerror(error));
    int status = 0;
    for (int at = 1; at < count && !status; at++) status = feed(&arena, words[at]);
    calltree_finish(&arena);
    arena_forget(&arena);
    return status;
}

static int dump(const char *path) {
    Arena arena;
    int error = arena_attach(&arena, path);
    if (error) return fail("cannot read", path, strerror(error));
    dump_tree(&arena, stdout);
    arena_forget(&arena);
    return fflush(stdout) ? fail("cannot write", "standard output", "disk full?") : 0;
}

#define FIELD(name) printf("%s %zu %zu\n", #name, offsetof(Event, name), sizeof(((Event *)0)->name))
static int layout(void) {
    FIELD(value);
    FIELD(frame);
    FIELD(code);
    FIELD(site);
    FIELD(key);
    FIELD(kind);
    return 0;
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "dump")) return dump(words[2]);
    if (count >= 3 && !strcmp(words[1], "run")) return run(count - 2, words + 2);
    if (count == 2 && !strcmp(words[1], "layout")) return layout();
    return fail("usage:", words[0], "run [--seed N] [--distance N] ARENA THREAD:FILE... | dump ARENA | layout");
}
