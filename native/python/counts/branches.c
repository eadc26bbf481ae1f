#include "branches.h"

#include <stdlib.h>
#include <string.h>

#include "python/definitions.h"
#include "python/numbers.h"
#include "python/stamps.h"
#include "python/threads.h"
#include "python/interpreter/watching.h"

enum { CHAINS = 4096 };

int branches_wanted;
static Counting *chains[CHAINS], *latest; /* counters of the open invocations by frame; those that were looked up last */
static uint32_t open_count;
static size_t open_bytes;
static Text notes; /* what is not counted */

void branches_start(void) {
    branches_wanted = recording.settings.branches;
    text_free(&notes);
}

/* ---- of a function ---- */

void branches_of_function(Function *function) {
    if (!branches_wanted || !function_counts_inside(function)) return;
    PyObject *type, *value, *trace;
    const char *left_out = NULL;
    PyErr_Fetch(&type, &value, &trace); /* the program may be handling an exception */
    if (!function->branches) function->branches = branches_find(function->code, MAX_BRANCHES, &left_out);
    if (function->branches) watch(function, WATCH_BRANCHES);
    PyErr_Restore(type, value, trace);
    if (left_out) define_note(&notes, "branches", left_out);
}

static Counting **place_of(const Frame *frame) {
    Counting **at = &chains[((uintptr_t)frame >> 4) % CHAINS];
    while (*at && (*at)->frame != frame) at = &(*at)->next;
    return at;
}

static size_t size_of(int count) { return sizeof(Counting) + (size_t)count * 2 * sizeof(uint64_t); }

static void forget(Counting **place) {
    Counting *counting = *place;
    *place = counting->next;
    open_bytes -= size_of(counting->count);
    open_count--;
    latest = NULL;
    free(counting);
}

void branches_forget_function(Function *function) {
    if (!function->branches) return;
    for (int chain = 0; open_count && chain < CHAINS; chain++)
        for (Counting **at = &chains[chain]; *at;)
            if ((*at)->function == function) forget(at);
            else at = &(*at)->next;
    branches_free(function->branches);
}

/* ---- of an invocation ---- */

void counting_forget(const Frame *frame) {
    Counting **place = open_count ? place_of(frame) : NULL;
    if (place && *place) forget(place);
}

void counting_begin(Function *function, Frame *frame) {
    counting_forget(frame);
    if (!function->branches) return;
    int count = function->branches->count;
    if (open_bytes + size_of(count) > MAX_COUNTING_BYTES) return;
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

Counting *counting_of(const Frame *frame) {
    if (!open_count) return NULL;
    if (!latest || latest->frame != frame) latest = *place_of(frame);
    return latest;
}

/* ---- writing ---- */

static int32_t number_of(const Function *function, int at, int taken) {
    Branch *branch = &function->branches->branch[at];
    if (branch->number[taken]) return branch->number[taken];
    char name[64], rank[16] = "";
    int is_new;
    if (branch->rank > 1) snprintf(rank, sizeof rank, "_%d", branch->rank);
    snprintf(name, sizeof name, "branch.L%d%s.%s", branch->line, rank, taken ? "taken" : "not_taken");
    branch->number[taken] = number_of_feature(function, name, &is_new);
    if (is_new) define_feature(function, branch->number[taken], name);
    return branch->number[taken];
}

static void forget_numbers(Branches *branches) {
    if (branches->process == recording.process) return;
    branches->process = recording.process;
    for (int at = 0; at < branches->count; at++) branches->branch[at].number[0] = branches->branch[at].number[1] = 0;
}

static void write_count(Thread *thread, const Counting *counting, int place) {
    double value = (double)counting->counts[place];
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int32_t number = number_of(counting->function, place / 2, place % 2);
    if (number) thread_write(thread, bits, (int64_t)(intptr_t)counting->frame, number, -1, -1, EVENT_FEATURE);
}

/* Write the counts that are not 0. If all are, write one 0, because an invocation without counts would look as if it
 * was not counted. */
static void write_all(Thread *thread, const Counting *counting) {
    int written = 0;
    for (int place = 0; place < 2 * counting->count; place++)
        if (counting->counts[place]) {
            write_count(thread, counting, place);
            written = 1;
        }
    if (!written) write_count(thread, counting, 1);
}

void counting_write(Thread *thread, const Frame *frame) {
    Counting **place = open_count ? place_of(frame) : NULL;
    if (!place || !*place) return;
    int64_t stamp = overhead_begin();
    Function *function = (*place)->function;
    forget_numbers(function->branches);
    if (!(*place)->is_incomplete) write_all(thread, *place);
    else define_note(&notes, "branches", "not counted while the program traced itself (sys.settrace)");
    forget(place);
    function->sampler->reading_ns += overhead_end(stamp);
}
