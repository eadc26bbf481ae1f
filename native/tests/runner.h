/* A tiny test runner. Each test_*.c has one suite function; a CHECK that fails is counted and says where. */
#ifndef PERFLAW_RUNNER_H
#define PERFLAW_RUNNER_H

#include "arena.h"

/* The run so far, handed to every suite: no global state. */
typedef struct Tally {
    int passed, failed;
    const char *path; /* of an arena file that each test may create anew */
} Tally;

void check(Tally *tally, int fine, const char *what, const char *file, int line);
#define CHECK(tally, condition) check(tally, !!(condition), #condition, __FILE__, __LINE__)

/* A new arena with a begun tree at tally->path. */
Arena fresh(Tally *tally, uint64_t limit);

void test_arena(Tally *tally);
void test_containers(Tally *tally);
void test_clock(Tally *tally);
void test_moments(Tally *tally);
void test_reservoir(Tally *tally);
void test_calltree(Tally *tally);

#endif
