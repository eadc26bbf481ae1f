/* Begins and ends of calls, as many as a file has, in the order of threads and times: sorted in runs that lie in a file
 * beside, and merged as they are read. So memory does not grow with the number of calls.
 *
 * Ownership: marks_free gives everything back but the file, which is the opener's. Threads: one at a time. Cost: 60 to 200 ns
 * a mark, and 40 bytes of the file beside.
 */
#ifndef PERFLAW_MARKS_H
#define PERFLAW_MARKS_H

#include <stdint.h>

enum { MARK_CALL, MARK_BEGIN, MARK_END };
#define NEVER INT64_MAX /* the end of a call that has none */

typedef struct Mark {
    int64_t start, end;   /* ns; the end of a MARK_BEGIN or MARK_END is NEVER */
    uint64_t place;       /* in the file */
    uint32_t thread, name;
    uint32_t numbers;     /* index of the first number that came with it, in its run */
    uint16_t number_count, kind;
} Mark;
typedef struct Number {
    uint64_t name;
    double value;
} Number;
_Static_assert(sizeof(Mark) == 40, "what the header says of the file");

/* How a thread is sorted. */
typedef struct ThreadOrder {
    uint32_t rank;        /* place of the thread among all */
    uint32_t is_reversed; /* of two calls with the same times, whether the last one in the file is the outer one */
} ThreadOrder;

typedef struct Run {
    Mark *marks;
    Number *numbers;
    uint64_t mapped; /* bytes of the mapping; 0 where it is in memory */
    uint64_t offset; /* in the file */
    uint32_t count, number_count;
} Run;

typedef struct Marks {
    Run *runs;         /* the last one takes what comes, as long as `is_open` */
    uint32_t run_count, is_open;
    int file;          /* descriptor of the file beside */
    uint64_t file_size, count;
} Marks;

/* A mark, and its numbers, that is added. 0 or errno. */
int marks_add(Marks *marks, Mark mark, const Number *numbers, uint32_t count);
/* Sort what was added, also a second time after more was added. 0 or errno. */
int marks_sort(Marks *marks, const ThreadOrder *threads);

/* Reads the marks of some threads, in order. */
typedef struct MarkReader {
    const Marks *marks;
    const ThreadOrder *threads;
    uint32_t *at, *until;   /* by run: places of the next mark, and of the first that is not read */
    uint32_t *heap, height; /* numbers of runs */
    Mark *heads, current;   /* heads: the next mark of each run, so that no page of a run is touched before its turn */
    uint64_t taken;
} MarkReader;
/* Begin with the threads of ranks [first, until). 0 or errno. */
int marks_read(MarkReader *reader, const Marks *marks, const ThreadOrder *threads, uint32_t first, uint32_t until);
/* The next mark and its numbers, the mark valid until the next call; NULL at the end. */
const Mark *marks_next(MarkReader *reader, const Number **numbers);
void marks_end(MarkReader *reader);
void marks_free(Marks *marks);

#endif
