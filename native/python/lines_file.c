/* Counters in files of the spool, mapped shared: what a killed target had counted is there. An array of uint64_t each. */
#include "lines_count.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { USUAL = 1 << 14, PAGE = 4096, MOST_FILES = 1 << 9 }; /* 128 kB a file, as a rule */

static uint64_t *mapped;
static int files, used, room;

void counters_begin(void) {
    mapped = NULL; /* a forked child has no mapping of its parent's */
    files = used = room = 0;
}

/* Disk space is taken before it is mapped: a full disk is an error here, never a SIGBUS at some later store. The first
 * write to a page of a file costs a fault: here, not at some event. */
static uint64_t *map(int file, size_t bytes) {
    if (posix_fallocate(file, 0, (off_t)bytes)) return NULL;
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) return NULL;
    if (madvise(place, bytes, MADV_DONTFORK)) return NULL;
    for (size_t at = 0; at < bytes; at += PAGE) ((volatile char *)place)[at] = 0;
    return place;
}

static int add_file(int count) {
    char path[sizeof recorder.folder + 32];
    if (files == MOST_FILES) return 0;
    snprintf(path, sizeof path, "%s/%d.counts", recorder.folder, files + 1);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return 0;
    int wanted = count > USUAL ? count : USUAL;
    uint64_t *place = map(file, (size_t)wanted * sizeof *place);
    close(file);
    if (!place) return 0;
    mapped = place;
    files++;
    used = 0;
    room = wanted;
    return 1;
}

uint64_t *counters_room(int count, int *file, int *place) {
    if (count > room - used && !add_file(count)) {
        lines_say(files == MOST_FILES ? "not all counted: too many lines" : "not all counted: the spool cannot be written, is the disk full?");
        return NULL;
    }
    *file = files;
    *place = used;
    used += count;
    return mapped + *place;
}
