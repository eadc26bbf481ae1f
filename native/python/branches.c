#include "branches.h"

#include <stdlib.h>
#include <string.h>

#include "event.h"

enum { CHAINS = 4096 };

int branches_wanted;
static Counting *chains[CHAINS], *latest; /* the open invocations by frame; the one that was asked for last */
static uint32_t open_count;
static size_t open_bytes;
static Text said; /* of what is not counted */

void branches_start(void) { branches_wanted = recorder.settings.branches; }

/* ---- of a function ---- */

void branches_say(const char *words) {
    if (said.length && strstr(said.data, words)) return;
    if (said.length) text_word(&said, "; ");
    text_word(&said, words);
    text_add(&said, "", 1);
    said.length--; /* the end of the string is no part of it */
    if (!said.torn) define_words("branches", said.data);
}

void branches_meet(Function *function) {
    if (!branches_wanted || function->mode != ALWAYS) return;
    PyObject *type, *value, *trace;
    const char *left_out = NULL;
    PyErr_Fetch(&type, &value, &trace); /* the target may be unwinding */
    if (!function->branches && (function->branches = branches_find(function->code, MOST_BRANCHES, &left_out)))
        events_watch(function, WATCH_BRANCHES);
    PyErr_Restore(type, value, trace);
    if (left_out) branches_say(left_out);
}

static Counting **place_of(const Frame *frame) {
    Counting **at = &chains[((uintptr_t)frame >> 4) % CHAINS];
    while (*at && (*at)->frame != frame) at = &(*at)->next;
    return at;
}

static size_t size_of(int count) { return sizeof(Counting) + (size_t)count * 2 * sizeof(uint64_t); }

static void drop(Counting **place) {
    Counting *gone = *place;
    *place = gone->next;
    open_bytes -= size_of(gone->count);
    open_count--;
    latest = NULL;
    free(gone);
}

void branches_free(Function *function) {
    if (!function->branches) return;
    for (int chain = 0; open_count && chain < CHAINS; chain++)
        for (Counting **at = &chains[chain]; *at;)
            if ((*at)->function == function) drop(at);
            else at = &(*at)->next;
    branches_drop(function->branches);
}

/* ---- of an invocation ---- */

void branches_forget(const Frame *frame) {
    Counting **place = open_count ? place_of(frame) : NULL;
    if (place && *place) drop(place);
}

void branches_open(Function *function, Frame *frame) {
    branches_forget(frame);
    if (!function->branches) return;
    int count = function->branches->count;
    if (open_bytes + size_of(count) > MOST_COUNTING) return;
    Counting *new = calloc(1, size_of(count));
    if (!new) return;
    new->frame = frame;
    new->function = function;
    new->count = count;
    Counting **chain = &chains[((uintptr_t)frame >> 4) % CHAINS];
    new->next = *chain;
    *chain = new;
    open_bytes += size_of(count);
    open_count++;
}

Counting *branches_of(const Frame *frame) {
    if (!open_count) return NULL;
    if (!latest || latest->frame != frame) latest = *place_of(frame);
    return latest;
}

/* ---- telling ---- */

static int32_t number_of(const Function *function, int at, int taken) {
    Branch *branch = &function->branches->branch[at];
    if (branch->number[taken]) return branch->number[taken];
    char name[64], rank[16] = "";
    int new;
    if (branch->rank > 1) snprintf(rank, sizeof rank, "_%d", branch->rank);
    snprintf(name, sizeof name, "branch.L%d%s.%s", branch->line, rank, taken ? "taken" : "not_taken");
    branch->number[taken] = function_feature(function, name, &new);
    if (new) define_feature(function, branch->number[taken], name);
    return branch->number[taken];
}

static void forget_numbers(Branches *branches) {
    if (branches->process == recorder.process) return;
    branches->process = recorder.process;
    for (int at = 0; at < branches->count; at++) branches->branch[at].number[0] = branches->branch[at].number[1] = 0;
}

static void write_count(Thread *thread, const Counting *counting, int place) {
    double value = (double)counting->counts[place];
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int32_t number = number_of(counting->function, place / 2, place % 2);
    if (number) event_write(thread, bits, (int64_t)(intptr_t)counting->frame, number, -1, -1, EVENT_FEATURE);
}

/* What is not 0; the first outcome in any case, for an invocation with none would look like one that was not counted. */
static void write_all(Thread *thread, const Counting *counting) {
    int written = 0;
    for (int place = 0; place < 2 * counting->count; place++)
        if (counting->counts[place]) {
            write_count(thread, counting, place);
            written = 1;
        }
    if (!written) write_count(thread, counting, 1);
}

void branches_tell(Thread *thread, const Frame *frame) {
    Counting **place = open_count ? place_of(frame) : NULL;
    if (!place || !*place) return;
    int64_t begun = clock_ns(&recorder.clock), taken = thread->taken;
    Function *function = (*place)->function;
    forget_numbers(function->branches);
    if (!(*place)->lost) write_all(thread, *place);
    else branches_say("not counted while the program traced itself (sys.settrace)");
    drop(place);
    /* Waiting for room in the ring has been taken out already. */
    int64_t now = clock_ns(&recorder.clock), spent = now - begun - (thread->taken - taken);
    if (cpu_may_be_off(&thread->cpu, now)) cpu_off(&thread->cpu, &recorder.clock);
    function->reading_ns += spent;
    thread->taken += spent;
}
