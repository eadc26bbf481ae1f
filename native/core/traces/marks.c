#include "marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RUN_MARKS = 1 << 18, RUN_NUMBERS = 1 << 19, FORGET_EVERY = 1 << 18 };
static const uint64_t PAGE = 65536; /* a multiple of the page size of any machine */

static int compare(const void *one, const void *other, void *order) {
    const Mark *a = one, *b = other;
    const ThreadOrder *of_a = (const ThreadOrder *)order + a->thread, *of_b = (const ThreadOrder *)order + b->thread;
    if (of_a->rank != of_b->rank) return of_a->rank < of_b->rank ? -1 : 1;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->end != b->end) return a->end > b->end ? -1 : 1; /* the longer one is the outer one */
    /* Only whole calls may be written as they end; begins and ends stand in the order of the file. */
    int is_reversed = of_a->is_reversed && a->kind == MARK_CALL && b->kind == MARK_CALL;
    return (a->place < b->place) != is_reversed ? -1 : a->place == b->place ? 0 : 1;
}

static int write_all(int file, const void *from, uint64_t size, uint64_t offset) {
    for (const char *at = from; size;) {
        ssize_t written = pwrite(file, at, size, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return errno ? errno : EIO;
        at += written;
        size -= (uint64_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

/* Move the run that was filled to the file. Its numbers are mapped from now on; its memory is used for the next one. */
static int close_run(Marks *marks, Run *run) {
    uint64_t of_marks = run->count * sizeof(Mark), size = of_marks + run->number_count * sizeof(Number);
    run->offset = (marks->file_size + PAGE - 1) / PAGE * PAGE;
    run->mapped = (size + PAGE - 1) / PAGE * PAGE;
    if (ftruncate(marks->file, (off_t)(run->offset + run->mapped))) return errno;
    int error = write_all(marks->file, run->marks, of_marks, run->offset);
    if (!error) error = write_all(marks->file, run->numbers, size - of_marks, run->offset + of_marks);
    if (error) return run->mapped = 0, error;
    char *mapped = mmap(NULL, run->mapped, PROT_READ, MAP_SHARED, marks->file, (off_t)run->offset);
    if (mapped == MAP_FAILED) return run->mapped = 0, errno;
    marks->file_size = run->offset + run->mapped;
    free(run->marks);
    free(run->numbers);
    run->marks = (Mark *)(void *)mapped;
    run->numbers = (Number *)(void *)(mapped + of_marks);
    return 0;
}

static int open_run(Marks *marks) {
    Run *runs = realloc(marks->runs, (marks->run_count + 1) * sizeof(Run));
    if (!runs) return ENOMEM;
    marks->runs = runs;
    Run *run = &runs[marks->run_count];
    *run = (Run){.marks = malloc(RUN_MARKS * sizeof(Mark)), .numbers = malloc(RUN_NUMBERS * sizeof(Number))};
    if (!run->marks || !run->numbers) return free(run->marks), free(run->numbers), ENOMEM;
    marks->run_count++;
    marks->is_open = 1;
    return 0;
}

int marks_add(Marks *marks, Mark mark, const Number *numbers, uint32_t count) {
    Run *run = marks->is_open ? &marks->runs[marks->run_count - 1] : NULL;
    int error = 0;
    if (run && (run->count == RUN_MARKS || run->number_count + count > RUN_NUMBERS)) {
        if ((error = close_run(marks, run))) return error;
        run = NULL;
    }
    if (!run && (error = open_run(marks))) return error;
    run = &marks->runs[marks->run_count - 1];
    mark.numbers = run->number_count;
    mark.number_count = (uint16_t)count;
    if (count) memcpy(run->numbers + run->number_count, numbers, count * sizeof(Number));
    run->number_count += count;
    run->marks[run->count++] = mark;
    marks->count++;
    return 0;
}

/* Pages of the file that were read count as memory of this process until it forgets them. */
static void forget(const Run *run) {
    if (run->mapped) madvise(run->marks, run->mapped, MADV_DONTNEED);
}

static int is_sorted(const Run *run, const ThreadOrder *threads) {
    uint32_t at = 1;
    while (at < run->count && compare(&run->marks[at - 1], &run->marks[at], (void *)(uintptr_t)threads) < 0) at++;
    return at >= run->count;
}

/* Sort a run, if it is not: one in the file by way of the buffer. */
static int sort_run(const Marks *marks, Run *run, const ThreadOrder *threads, Mark *buffer) {
    int error = 0;
    if (!is_sorted(run, threads)) {
        Mark *sorted = run->mapped ? memcpy(buffer, run->marks, run->count * sizeof(Mark)) : run->marks;
        qsort_r(sorted, run->count, sizeof(Mark), compare, (void *)(uintptr_t)threads);
        if (run->mapped) error = write_all(marks->file, sorted, run->count * sizeof(Mark), run->offset);
    }
    forget(run);
    return error;
}

int marks_sort(Marks *marks, const ThreadOrder *threads) {
    Mark *buffer = NULL;
    int error = 0;
    if (marks->run_count > 1 && !(buffer = malloc(RUN_MARKS * sizeof(Mark)))) return ENOMEM;
    for (uint32_t which = 0; which < marks->run_count && !error; which++)
        error = sort_run(marks, &marks->runs[which], threads, buffer);
    free(buffer);
    return error;
}

static int is_before(const MarkReader *reader, uint32_t run, uint32_t other) {
    return compare(&reader->heads[run], &reader->heads[other], (void *)(uintptr_t)reader->threads) < 0;
}

static void sink(MarkReader *reader, uint32_t at) {
    uint32_t run = reader->heap[at];
    for (uint32_t child; (child = 2 * at + 1) < reader->height; at = child) {
        if (child + 1 < reader->height && is_before(reader, reader->heap[child + 1], reader->heap[child])) child++;
        if (is_before(reader, run, reader->heap[child])) break;
        reader->heap[at] = reader->heap[child];
    }
    reader->heap[at] = run;
}

/* Place of the first mark of a run whose thread has this rank or a higher one. */
static uint32_t place_of(const Run *run, const ThreadOrder *threads, uint32_t rank) {
    uint32_t low = 0, high = run->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (threads[run->marks[middle].thread].rank < rank) low = middle + 1;
        else high = middle;
    }
    return low;
}

int marks_read(MarkReader *reader, const Marks *marks, const ThreadOrder *threads, uint32_t first, uint32_t until) {
    uint32_t *places = calloc(3 * (size_t)marks->run_count + 1, sizeof(uint32_t));
    Mark *heads = calloc((size_t)marks->run_count + 1, sizeof(Mark));
    if (!places || !heads) return free(places), free(heads), ENOMEM;
    *reader = (MarkReader){.marks = marks, .threads = threads, .at = places, .heads = heads};
    reader->until = places + marks->run_count;
    reader->heap = reader->until + marks->run_count;
    for (uint32_t which = 0; which < marks->run_count; which++) {
        const Run *run = &marks->runs[which];
        reader->at[which] = place_of(run, threads, first);
        reader->until[which] = place_of(run, threads, until);
        if (reader->at[which] < reader->until[which]) {
            reader->heads[which] = run->marks[reader->at[which]];
            reader->heap[reader->height++] = which;
        }
        forget(run);
    }
    for (uint32_t at = reader->height / 2; at--;) sink(reader, at);
    return 0;
}

static void forget_all(const Marks *marks) {
    for (uint32_t run = 0; run < marks->run_count; run++) forget(&marks->runs[run]);
}

const Mark *marks_next(MarkReader *reader, const Number **numbers) {
    if (!reader->height) return NULL;
    if (++reader->taken % FORGET_EVERY == 0) forget_all(reader->marks);
    uint32_t which = reader->heap[0];
    const Run *run = &reader->marks->runs[which];
    reader->current = reader->heads[which];
    *numbers = run->numbers + reader->current.numbers;
    if (++reader->at[which] == reader->until[which]) reader->heap[0] = reader->heap[--reader->height];
    else reader->heads[which] = run->marks[reader->at[which]];
    if (reader->height > 1) sink(reader, 0);
    return &reader->current;
}

void marks_end(MarkReader *reader) {
    forget_all(reader->marks);
    free(reader->at);
    free(reader->heads);
}

void marks_free(Marks *marks) {
    for (uint32_t which = 0; which < marks->run_count; which++) {
        Run *run = &marks->runs[which];
        if (run->mapped) {
            munmap(run->marks, run->mapped);
        } else {
            free(run->marks);
            free(run->numbers);
        }
    }
    free(marks->runs);
    *marks = (Marks){.file = -1};
}
