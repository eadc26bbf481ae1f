/* A tiny test runner. Each test_*.c has one suite function; a CHECK that fails is counted and says where. */
#ifndef PERFLAW_RUNNER_H
#define PERFLAW_RUNNER_H

#include "core/tree/tree.h"

/* The run so far, handed to every suite: no global state. */
typedef struct Tally {
    int passed, failed;
} Tally;

void check(Tally *tally, int fine, const char *what, const char *file, int line);
#define CHECK(tally, condition) check(tally, !!(condition), #condition, __FILE__, __LINE__)

/* A tree in a new arena of so many bytes, which the caller hands to done(). */
Tree *uncounted(Tally *tally, uint64_t memory);
void done(Tree *tree);
/* Feed events to a tree. */
void play(Tree *tree, EventSource *source, const Event *events, int count);
#define PLAY(tree, source, ...) \
    play(tree, source, (Event[])__VA_ARGS__, sizeof((Event[])__VA_ARGS__) / sizeof(Event))

void test_arena(Tally *tally);
void test_containers(Tally *tally);
void test_clock(Tally *tally);
void test_cpu(Tally *tally);
void test_trials(Tally *tally);
void test_moments(Tally *tally);
void test_chains(Tally *tally);
void test_reservoir(Tally *tally);
void test_calltree(Tally *tally);
void test_stacks(Tally *tally);
void test_core(Tally *tally);
void test_skips(Tally *tally);
void test_smaller_skips(Tally *tally);
void test_spans(Tally *tally);
void test_paths(Tally *tally);

#endif
