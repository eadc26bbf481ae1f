/* Rings and trees with real threads, for ThreadSanitizer: writers fill rings while a core reads them, and several such
 * readers work at once, as the recorder's do.
 *
 * A writer and its reader map the file of a ring at two addresses, where ThreadSanitizer would see no race between them;
 * so mmap gives the mapping that a file already has (the linker's --wrap). The counts are checked as well. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/ring.h"
#include "core/library/core.h"
#include "core/library/rows.h"

enum { CORES = 3, WRITERS = 3, CALLS = 20000, CAPACITY = 256, MOST = 64 };

/* ---- one mapping for each file ---- */

typedef struct Mapping {
    void *place;
    ino_t file;
    int users;
} Mapping;
static Mapping mappings[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *__real_mmap(void *place, size_t size, int protection, int flags, int file, off_t at);
int __real_munmap(void *place, size_t size);

void *__wrap_mmap(void *place, size_t size, int protection, int flags, int file, off_t at) {
    struct stat about;
    if (file < 0 || fstat(file, &about)) return __real_mmap(place, size, protection, flags, file, at);
    pthread_mutex_lock(&lock);
    Mapping *found = NULL, *empty = NULL;
    for (int each = 0; each < MOST; each++) {
        if (mappings[each].users && mappings[each].file == about.st_ino) found = &mappings[each];
        if (!mappings[each].users) empty = &mappings[each];
    }
    if (!found && empty)
        *(found = empty) = (Mapping){__real_mmap(place, size, protection, flags, file, at), about.st_ino, 0};
    if (found) found->users++;
    pthread_mutex_unlock(&lock);
    return found ? found->place : MAP_FAILED;
}

int __wrap_munmap(void *place, size_t size) {
    int is_shared = 0;
    pthread_mutex_lock(&lock);
    for (int each = 0; each < MOST; each++)
        if (mappings[each].users && mappings[each].place == place) is_shared = --mappings[each].users > 0;
    pthread_mutex_unlock(&lock);
    return is_shared ? 0 : __real_munmap(place, size);
}

/* ---- writers, and the core that reads them ---- */

typedef struct Writer {
    char path[96];
    Ring ring;
    int is_stopped; /* by the reader */
    pthread_t thread;
} Writer;

typedef struct Reader {
    Writer writers[WRITERS];
    int stops; /* whether the reader stops the writers in the middle */
    uint64_t calls;
    int failures;
    pthread_t thread;
} Reader;

static void *write_calls(void *argument) {
    Writer *writer = argument;
    Ring *ring = &writer->ring;
    for (int at = 0; at < 2 * CALLS && !writer->is_stopped; at++) {
        if (ring->position == ring->limit && !ring_has_room(ring) && ring_wait(ring, 0)) writer->is_stopped = 1;
        if (writer->is_stopped) break;
        *ring_next(ring) = (Event){at, at / 2 + 1, 1 + at / 2 % 7, 0, -1, at % 2 ? EVENT_EXIT : EVENT_ENTER};
        ring_publish(ring);
    }
    return NULL;
}

static void *read_calls(void *argument) {
    Reader *reader = argument;
    Core *core = core_open(1, 4);
    for (int at = 0; at < WRITERS; at++) reader->failures += core_attach(core, reader->writers[at].path) != 0;
    for (uint64_t taken = 0, wanted = (uint64_t)WRITERS * 2 * CALLS; taken < (reader->stops ? wanted / 2 : wanted);)
        taken += core_step(core, 1000);
    if (reader->stops) core_stop(core);
    for (int at = 0; at < WRITERS; at++) pthread_join(reader->writers[at].thread, NULL);
    while (core_step(core, 1000)) continue;
    core_finish(core);
    HeadRow head = {0};
    core_export(core, TABLE_HEAD, &head, sizeof head);
    reader->calls = (uint64_t)head.calls;
    reader->failures += head.lost != 0;
    core_close(core);
    return NULL;
}

int main(void) {
    static Reader readers[CORES];
    char folder[] = "/tmp/perflaw-threads-XXXXXX";
    int failures = !mkdtemp(folder);
    for (int each = 0; each < CORES; each++) {
        readers[each].stops = each == CORES - 1;
        for (int at = 0; at < WRITERS; at++) {
            Writer *writer = &readers[each].writers[at];
            snprintf(writer->path, sizeof writer->path, "%s/%d-%d.ring", folder, each, at);
            failures += ring_create(&writer->ring, writer->path, CAPACITY) != 0;
            failures += pthread_create(&writer->thread, NULL, write_calls, writer) != 0;
        }
        failures += pthread_create(&readers[each].thread, NULL, read_calls, &readers[each]) != 0;
    }
    for (int each = 0; each < CORES; each++) {
        pthread_join(readers[each].thread, NULL);
        uint64_t written = 0;
        for (int at = 0; at < WRITERS; at++) {
            written += readers[each].writers[at].ring.position / 2;
            ring_unmap(&readers[each].writers[at].ring);
            unlink(readers[each].writers[at].path);
        }
        failures += readers[each].failures + (readers[each].calls != written);
        if (!readers[each].stops) failures += written != (uint64_t)WRITERS * CALLS;
        printf("%d: %llu calls written, %llu read\n", each, (unsigned long long)written,
               (unsigned long long)readers[each].calls);
    }
    rmdir(folder);
    printf("%d failures\n", failures);
    return failures != 0;
}
