#include "selection.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "definitions.h"

#define MAGIC 0x314c455346525046ull /* "FPRFSEL1" */
enum { MAX_FILES = 256, POLL_US = 200, TIMEOUT_US = 120000000 }; /* the names of a large program take the recorder long */

typedef struct Place {
    uint64_t offset; /* from where the file is loaded */
    uint32_t size, selected;
} Place;
typedef struct Answer {
    uint64_t magic, count;
    uint64_t others; /* whether functions without a place are recorded */
    Place places[];
} Answer;
typedef struct LoadedFile {
    const void *base;
    const Answer *answer;
} LoadedFile;

static LoadedFile files[MAX_FILES]; /* a forked child has these mappings too */
static int file_count;

/* ---- asking the recorder ---- */

static uint64_t digest(const char *name) {
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3ull;
    return hash;
}

/* The answer in a file; NULL if the file is not there or is no answer. */
static const Answer *read_answer(const char *path) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    void *data = fstat(file, &about) ? MAP_FAILED : mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (data == MAP_FAILED) return NULL;
    const Answer *answer = data;
    uint64_t room = ((uint64_t)about.st_size - sizeof *answer) / sizeof(Place);
    return answer->magic == MAGIC && answer->count <= room ? answer : NULL;
}

/* Write a question under a name of our own and then rename it, so that the recorder sees whole questions only. */
static int write_question(const char *path, const char *name) {
    char part[sizeof recording.spool + 64], whole[sizeof recording.spool + 64];
    snprintf(part, sizeof part, "%s-%d.part", path, getpid());
    snprintf(whole, sizeof whole, "%s.ask", path);
    int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return 0;
    int done = write(file, name, strlen(name)) == (ssize_t)strlen(name);
    close(file);
    return done && !rename(part, whole);
}

static const Answer *ask(const char *name) {
    char path[sizeof recording.spool + 32];
    snprintf(path, sizeof path, "%s/chosen/%016llx", recording.spool, (unsigned long long)digest(name));
    const Answer *answer = read_answer(path);
    if (answer || !write_question(path, name)) return answer;
    for (int waited = 0; waited < TIMEOUT_US && !answer; waited += POLL_US) {
        if (recording.recorder_pid && kill(recording.recorder_pid, 0) && errno == ESRCH) return NULL;
        usleep(POLL_US);
        answer = read_answer(path);
    }
    return answer;
}

/* ---- looking up ---- */

static const Answer *answer_for(const void *base, const char *name) {
    for (int at = 0; at < file_count; at++)
        if (files[at].base == base) return files[at].answer;
    const Answer *answer = ask(name);
    if (!answer) recording_stop("the recorder did not say which functions to record");
    else if (file_count < MAX_FILES) files[file_count++] = (LoadedFile){base, answer};
    return answer;
}

static const Place *place_at(const Answer *answer, uint64_t offset) {
    uint64_t low = 0, high = answer->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (answer->places[middle].offset < offset) low = middle + 1;
        else high = middle;
    }
    return low < answer->count && answer->places[low].offset == offset ? &answer->places[low] : NULL;
}

int is_selected(const void *function, uint32_t *size) {
    char buffer[4096];
    const void *base;
    const char *name = loaded_file(function, &base, buffer, sizeof buffer);
    const Answer *answer = answer_for(base, name);
    if (!answer) return 0;
    const Place *place = place_at(answer, (uint64_t)((const char *)function - (const char *)base));
    if (!place) return (int)answer->others;
    *size = place->size;
    return (int)place->selected;
}
