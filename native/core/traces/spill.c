#include "spill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Head {
    uint32_t tag, size;
} Head;

static int grow(void **array, uint32_t *room, uint64_t wanted, size_t size) {
    if (wanted <= *room) return 0;
    uint64_t larger_room = wanted + wanted / 2 + 1024;
    if (larger_room > UINT32_MAX) return EOVERFLOW;
    void *larger = realloc(*array, larger_room * size);
    if (!larger) return ENOMEM;
    *array = larger;
    *room = (uint32_t)larger_room;
    return 0;
}

int spill_add(Spill *spill, uint32_t part, uint32_t tag, Slice bytes) {
    int error = grow((void **)&spill->bytes, &spill->capacity, spill->size + sizeof(Head) + bytes.size, 1);
    if (!error) error = grow((void **)&spill->parts, &spill->room, (uint64_t)spill->count + 1, 1);
    if (error) return error;
    const Head head = {tag, (uint32_t)bytes.size};
    memcpy(spill->bytes + spill->size, &head, sizeof head);
    if (bytes.size) memcpy(spill->bytes + spill->size + sizeof head, bytes.at, bytes.size);
    spill->size += (uint32_t)(sizeof head + bytes.size);
    spill->parts[spill->count++] = (uint8_t)(part % SPILL_PARTS);
    return 0;
}

int spill_is_full(const Spill *spill) { return spill->size >= spill->run_bytes; }

/* The bytes of the run, sorted by part; records of a part keep their order. */
static char *sorted(const Spill *spill, SpillRun *run) {
    char *target = malloc(spill->size + 1);
    if (!target) return NULL;
    uint32_t at[SPILL_PARTS + 1] = {0};
    for (int fill = 0; fill < 2; fill++) {
        const char *from = spill->bytes;
        for (uint32_t record = 0; record < spill->count; record++) {
            Head head;
            memcpy(&head, from, sizeof head);
            uint32_t size = (uint32_t)sizeof head + head.size, part = spill->parts[record];
            if (fill) memcpy(target + at[part], from, size);
            at[fill ? part : part + 1] += size;
            from += size;
        }
        if (fill) continue;
        for (int part = 0; part < SPILL_PARTS; part++) at[part + 1] += at[part];
        memcpy(run->ends, at, sizeof at);
    }
    return target;
}

int spill_write(Spill *spill) {
    SpillRun *runs = realloc(spill->runs, (spill->run_count + 1) * sizeof *runs);
    if (!runs) return ENOMEM;
    spill->runs = runs;
    SpillRun *run = &runs[spill->run_count];
    char *bytes = sorted(spill, run);
    if (!bytes) return ENOMEM;
    run->offset = spill->file_size;
    for (uint64_t done = 0; done < spill->size;) {
        ssize_t written = pwrite(spill->file, bytes + done, spill->size - done, (off_t)(run->offset + done));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            int error = errno ? errno : EIO;
            return free(bytes), error;
        }
        done += (uint64_t)written;
    }
    free(bytes);
    spill->file_size += spill->size;
    spill->run_count++;
    spill->size = spill->count = 0;
    return 0;
}

static int read_all(int file, char *to, uint64_t size, uint64_t offset) {
    for (uint64_t done = 0; done < size;) {
        ssize_t got = pread(file, to + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got ? errno : EIO;
        done += (uint64_t)got;
    }
    return 0;
}

int spill_read(const Spill *spill, uint32_t part, int (*take)(void *context, uint32_t tag, Slice bytes), void *context) {
    char *bytes = NULL;
    uint32_t room = 0;
    int error = 0;
    for (uint32_t number = 0; number < spill->run_count && !error; number++) {
        const SpillRun *run = &spill->runs[number];
        uint32_t begin = run->ends[part], size = run->ends[part + 1] - begin;
        error = grow((void **)&bytes, &room, size, 1);
        if (!error) error = read_all(spill->file, bytes, size, run->offset + begin);
        for (uint32_t at = 0; at < size && !error;) {
            Head head;
            memcpy(&head, bytes + at, sizeof head);
            at += (uint32_t)sizeof head;
            if (!take(context, head.tag, (Slice){bytes + at, head.size})) return free(bytes), 0;
            at += head.size;
        }
    }
    free(bytes);
    return error;
}

void spill_free(Spill *spill) {
    free(spill->bytes);
    free(spill->parts);
    free(spill->runs);
}
