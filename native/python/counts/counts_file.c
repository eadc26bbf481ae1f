#include "counts_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "python/recording.h"

enum { USUAL_COUNT = 1 << 14, PAGE = 4096, MAX_FILES = 1 << 9 };

static uint64_t *mapped;
static int file_count, used, capacity; /* of the last file */

void counts_begin(void) {
    mapped = NULL; /* a forked child has no mapping of its parent's */
    file_count = used = capacity = 0;
}

/* Disk space is allocated before it is mapped, so that a full disk is an error here and never a SIGBUS at a later
 * store. The first write to a page of a file costs a fault, which is taken here and not at an event. */
static uint64_t *map(int file, size_t bytes) {
    if (posix_fallocate(file, 0, (off_t)bytes)) return NULL;
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) return NULL;
    if (madvise(place, bytes, MADV_DONTFORK)) return NULL;
    for (size_t at = 0; at < bytes; at += PAGE) ((volatile char *)place)[at] = 0;
    return place;
}

static int add_file(int count) {
    char path[sizeof recording.folder + 32];
    if (file_count == MAX_FILES) return 0;
    snprintf(path, sizeof path, "%s/%d.counts", recording.folder, file_count + 1);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return 0;
    int size = count > USUAL_COUNT ? count : USUAL_COUNT;
    uint64_t *place = map(file, (size_t)size * sizeof *place);
    close(file);
    if (!place) return 0;
    mapped = place;
    file_count++;
    used = 0;
    capacity = size;
    return 1;
}

uint64_t *counts_allocate(int count, int *file, int *place, const char **obstacle) {
    if (count > capacity - used && !add_file(count)) {
        *obstacle = file_count == MAX_FILES ? "not all counted: too many lines"
                                            : "not all counted: the spool cannot be written, is the disk full?";
        return NULL;
    }
    *file = file_count;
    *place = used;
    used += count;
    return mapped + *place;
}
