#include "traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chrome.h"
#include "nesting.h"

#define EXPORTED __attribute__((visibility("default")))

struct Trace {
    Chrome chrome;
    ThreadOrder *threads;   /* by number */
    uint32_t *by_rank;      /* threads by rank */
    uint32_t ranked;
};

EXPORTED Trace *trace_open(int file) {
    Trace *trace = calloc(1, sizeof(Trace));
    if (trace) trace->chrome.marks.file = file;
    return trace;
}

EXPORTED int trace_feed(Trace *trace, const char *piece, uint64_t size) { return chrome_feed(&trace->chrome, piece, size); }

/* Threads by process, and by the first call of each; those without calls come last. */
static int by_first(const void *one, const void *other, void *threads) {
    const ChromeThread *a = (ChromeThread *)threads + *(const uint32_t *)one, *b = (ChromeThread *)threads + *(const uint32_t *)other;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a < b ? -1 : 1;
}

static int is_mixed(const ChromeThread *thread) { return thread->has_calls && thread->has_marks; }

static int rank(Trace *trace) {
    Chrome *chrome = &trace->chrome;
    uint32_t count = trace->ranked = chrome->thread_numbers.count;
    trace->threads = calloc(count + 1, sizeof(ThreadOrder));
    trace->by_rank = calloc(count + 1, sizeof(uint32_t));
    if (!trace->threads || !trace->by_rank) return ENOMEM;
    for (uint32_t at = 0; at < count; at++) trace->by_rank[at] = at;
    if (count) qsort_r(trace->by_rank, count, sizeof(uint32_t), by_first, chrome->threads);
    for (uint32_t at = 0; at < count; at++) {
        const ChromeThread *thread = &chrome->threads[trace->by_rank[at]];
        trace->threads[trace->by_rank[at]] = (ThreadOrder){at, thread->has_calls && !thread->ends_unordered && thread->starts_unordered};
    }
    return 0;
}

/* The names of a process by themselves, as codes that tell them apart. */
static int32_t *own_codes(const Chrome *chrome) {
    int32_t *codes = malloc((chrome->names.count + 1) * sizeof(int32_t));
    for (uint32_t name = 0; codes && name <= chrome->names.count; name++) codes[name] = (int32_t)name;
    return codes;
}

/* Threads that have complete events as well as begins and ends: the latter become complete events too. */
static int pair_mixed(Trace *trace) {
    Chrome *chrome = &trace->chrome;
    int32_t *codes = own_codes(chrome);
    int error = codes ? 0 : ENOMEM, any = 0;
    chrome->marks.is_open = 0; /* the runs that are read take nothing more */
    for (uint32_t at = 0; at < trace->ranked && !error; at++) {
        if (!is_mixed(&chrome->threads[trace->by_rank[at]])) continue;
        MarkReader reader;
        Outcome outcome = {0};
        ThreadOrder *order = &trace->threads[trace->by_rank[at]];
        any = 1;
        if ((error = marks_read(&reader, &chrome->marks, trace->threads, order->rank, order->rank + 1))) break;
        error = nesting_pair(&chrome->marks, &reader, codes, chrome->names.count + 1, &outcome);
        marks_end(&reader);
        chrome->processes[chrome->threads[trace->by_rank[at]].process].begun_earlier += outcome.begun_earlier;
    }
    free(codes);
    return error || !any ? error : marks_sort(&chrome->marks, trace->threads);
}

EXPORTED int trace_finish(Trace *trace) {
    Chrome *chrome = &trace->chrome;
    int error = chrome_finish(chrome);
    if (!error) error = rank(trace);
    if (!error) error = marks_sort(&chrome->marks, trace->threads);
    return error ? error : pair_mixed(trace);
}

EXPORTED void trace_place(const Trace *trace, uint64_t *bytes, uint64_t *events) {
    *bytes = trace->chrome.passed;
    *events = trace->chrome.events;
}

EXPORTED uint32_t trace_flags(const Trace *trace) { return trace->chrome.flags; }

EXPORTED uint32_t trace_texts(const Trace *trace, uint32_t table, const char **bytes, const uint64_t **ends) {
    const Chrome *chrome = &trace->chrome;
    const Names *tables[] = {&chrome->names, &chrome->number_names, &chrome->identities, &chrome->components,
                             &chrome->number_uses};
    const Names *names = tables[table % 5];
    *bytes = names->bytes;
    *ends = names->ends;
    return names->count;
}

EXPORTED int trace_process(const Trace *trace, uint32_t process, int64_t *words) {
    const Chrome *chrome = &trace->chrome;
    if (process >= chrome->process_numbers.count) return 0;
    const ChromeProcess *one = &chrome->processes[process];
    words[0] = one->first;
    words[1] = (int64_t)one->asynchronous;
    words[2] = (int64_t)one->number_left_out;
    words[3] = one->key;
    words[4] = one->name;
    words[5] = one->first != NEVER;
    return 1;
}

EXPORTED int trace_play(Trace *trace, uint32_t process, Core *core, const int32_t *codes, const int32_t *sites,
                        uint32_t code_count, const int32_t *features, int32_t key, int64_t tick, int64_t *outcome) {
    Chrome *chrome = &trace->chrome;
    uint32_t first = 0, until;
    while (first < trace->ranked && chrome->threads[trace->by_rank[first]].process != process) first++;
    for (until = first; until < trace->ranked && chrome->threads[trace->by_rank[until]].process == process;) until++;
    MarkReader reader;
    const Meaning meaning = {codes, sites, features, code_count, key, tick};
    Outcome found = {.begun_earlier = process < chrome->process_numbers.count ? chrome->processes[process].begun_earlier : 0,
                     .last = INT64_MIN};
    int error = marks_read(&reader, &chrome->marks, trace->threads, first, until);
    if (error) return error;
    const Number *numbers = NULL;
    const Mark *next = marks_next(&reader, &numbers);
    while (next && !error)
        error = nesting_play(core_tree(core), &reader, &next, &numbers, &meaning, is_mixed(&chrome->threads[next->thread]), &found);
    marks_end(&reader);
    const int64_t words[] = {(int64_t)found.begun_earlier, (int64_t)found.overlaps, (int64_t)found.cut,
                             (int64_t)found.left_out,      found.last,              (int64_t)found.frame};
    memcpy(outcome, words, sizeof words);
    return error;
}

EXPORTED void trace_close(Trace *trace) {
    chrome_free(&trace->chrome);
    free(trace->threads);
    free(trace->by_rank);
    free(trace);
}
