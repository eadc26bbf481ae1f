#include "branches.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "definitions.h"
#include "features/table.h"
#include "metrics.h"
#include "questions.h"
#include "settings.h"
#include "threads.h"
#include "vectors.h"

#define MAGIC 0x3148435242465250ull /* "PRFBRCH1" */
enum { CAPACITY = 8192, MAX_FUNCTIONS = CAPACITY / 2, MAX_EDGES = 1 << 16, TRIAL_BLOCKS = 2000, TRIALS = 5 };

typedef struct BranchHead {
    uint64_t magic, hook; /* hook: the program's perflaw_on_block, from where the file is loaded */
    uint32_t ranges, sites, edges, outcomes, names, texts;
} BranchHead;
/* Code of the function, from where the file is loaded. */
typedef struct Range {
    uint64_t first, end;
} Range;
/* Sites stand in order of their addresses, and their edges in order of the sites. */
typedef struct Site {
    uint64_t returns;
    uint32_t first_edge, edges;
} Site;
typedef struct Edge {
    uint32_t to, first_outcome, outcomes, unused;
} Edge;

_Static_assert(sizeof(BranchHead) == 40 && sizeof(Range) == 16 && sizeof(Site) == 16 && sizeof(Edge) == 16,
               "the rows of record/compiled/branches.py");

struct BranchTable {
    uintptr_t base;
    const BranchHead *head; /* a checked copy */
    const Range *ranges;
    const Site *sites;
    const Edge *edges;
    const uint32_t *outcomes, *names;
    const char *texts;
    int32_t first_number; /* of the outcomes' features */
};

int branches_wanted;
int64_t branches_block_ns_256;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Arena arena;
static _Atomic(const void *) seen[CAPACITY]; /* a hash table of functions with open addressing */
static BranchTable *tables[CAPACITY];        /* written before the function */
static int32_t function_count;
static int said_incomplete;

/* ---- tables ---- */

static uint32_t place_of(const void *function) {
    uint32_t at = (uint32_t)(((uintptr_t)function * 0x9e3779b97f4a7c15ull) >> 48), mask = CAPACITY - 1;
    const void *known;
    while ((known = atomic_load_explicit(&seen[at & mask], memory_order_acquire)) && known != function) at++;
    return at & mask;
}

/* Whether every index stays within its rows: what counts does not look again. */
static int is_sound(const BranchTable *table) {
    const BranchHead *head = table->head;
    if (!head->sites || head->edges > MAX_EDGES || !head->texts || table->texts[head->texts - 1]) return 0;
    for (uint32_t at = 0; at < head->sites; at++)
        if ((uint64_t)table->sites[at].first_edge + table->sites[at].edges > head->edges) return 0;
    for (uint32_t at = 0; at < head->edges; at++) {
        const Edge *edge = &table->edges[at];
        if (edge->to >= head->sites || (uint64_t)edge->first_outcome + edge->outcomes > head->outcomes) return 0;
    }
    for (uint32_t at = 0; at < head->outcomes; at++)
        if (table->outcomes[at] >= head->names) return 0;
    for (uint32_t at = 0; at < head->names; at++)
        if (table->names[at] >= head->texts) return 0;
    return 1;
}

static BranchTable *read_table(Answer answer, const void *base) {
    const BranchHead *given = answer.data;
    if (!given || answer.size < sizeof *given || given->magic != MAGIC) return NULL;
    uint64_t size = sizeof *given + (uint64_t)given->ranges * sizeof(Range) + (uint64_t)given->sites * sizeof(Site) +
                    (uint64_t)given->edges * sizeof(Edge) + ((uint64_t)given->outcomes + given->names) * sizeof(uint32_t) +
                    given->texts;
    BranchTable *table = size > answer.size ? NULL : arena_alloc(&arena, sizeof *table);
    BranchHead *head = table ? arena_alloc(&arena, size) : NULL;
    if (!head) return NULL;
    memcpy(head, given, size);
    const Range *ranges = (const Range *)(head + 1);
    const Site *sites = (const Site *)(ranges + head->ranges);
    const Edge *edges = (const Edge *)(sites + head->sites);
    const uint32_t *outcomes = (const uint32_t *)(edges + head->edges), *names = outcomes + head->outcomes;
    *table = (BranchTable){(uintptr_t)base, head, ranges, sites, edges, outcomes, names, (const char *)(names + head->names), 0};
    return is_sound(table) ? table : NULL;
}

void perflaw_block(const void *returns);

typedef void (*volatile Hook)(const void *);
static Hook *hook_of(const BranchTable *table) { return (Hook *)(table->base + table->head->hook); }

static BranchTable *ask(const void *function, const LoadedPlace *place, int32_t function_number) {
    char text[4096 + 64];
    const void *base = place->base;
    uint64_t offset = (uint64_t)((const char *)function - (const char *)base);
    snprintf(text, sizeof text, "branches %llx %s", (unsigned long long)offset, place->file);
    Answer answer = base ? question_ask(text) : (Answer){0};
    BranchTable *table = read_table(answer, function_address(base));
    question_drop(answer);
    if (!table || !table->head->names) return NULL;
    table->first_number = table_reserve((int32_t)table->head->names);
    for (uint32_t at = 0; at < table->head->names; at++)
        define_feature(table->first_number + (int32_t)at, function_number, table->texts + table->names[at]);
    *hook_of(table) = perflaw_block;
    return table;
}

static BranchTable *table_of(const void *function, int32_t function_number) {
    uint32_t place = place_of(function);
    if (atomic_load_explicit(&seen[place], memory_order_acquire)) return tables[place];
    Interruptions before;
    LoadedPlace loaded;
    signals_hold(&before); /* a handler that jumped out of here would leave the lock taken */
    loaded_place(function, &loaded);
    pthread_mutex_lock(&lock);
    place = place_of(function);
    if (!seen[place] && function_count < MAX_FUNCTIONS && (arena.base || !arena_create(&arena, 1ull << 28))) {
        tables[place] = ask(function, &loaded, function_number);
        function_count++;
        atomic_store_explicit(&seen[place], function, memory_order_release);
    }
    BranchTable *table = seen[place] ? tables[place] : NULL;
    pthread_mutex_unlock(&lock);
    signals_release(&before);
    return table;
}

/* ---- counting ---- */

static uint64_t size_of(const BranchTable *table) { return sizeof(Counting) + (table->head->edges + (uint64_t)table->head->names) * sizeof(uint64_t); }

static void pop(Thread *thread) {
    Counting *counting = thread->counting;
    thread->counting = counting->outer;
    arena_free(&thread->arena, counting, size_of(counting->table));
}

void branches_drop(Thread *thread) {
    while (thread->counting) pop(thread);
}

int branches_begin(Thread *thread, const void *function, int32_t function_number) {
    const OpenInvocation *open = thread->top;
    const BranchTable *table = table_of(function, function_number);
    while (thread->counting && thread->counting->stack < open->stack) pop(thread);
    Counting *counting = table ? arena_alloc(&thread->arena, size_of(table)) : NULL;
    if (!counting) return 0;
    *counting = (Counting){.outer = thread->counting, .table = table, .frame = open->frame, .stack = open->stack};
    thread->counting = counting;
    return 1;
}

/* The number of a site, 0 if it is none. */
static uint32_t site_at(const BranchTable *table, uint64_t returns) {
    uint32_t low = 1, high = table->head->sites;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table->sites[middle].returns < returns) low = middle + 1;
        else high = middle;
    }
    return low < table->head->sites && table->sites[low].returns == returns ? low : 0;
}

static int is_inside(const BranchTable *table, uint64_t returns) {
    for (uint32_t at = 0; at < table->head->ranges; at++)
        if (returns - table->ranges[at].first <= table->ranges[at].end - table->ranges[at].first) return 1;
    return 0;
}

static void go(Counting *counting, uint32_t to) {
    const BranchTable *table = counting->table;
    const Site *site = &table->sites[counting->last];
    counting->last = to;
    for (uint32_t at = site->first_edge; at < site->first_edge + site->edges; at++)
        if (table->edges[at].to == to) {
            counting->counts[at]++;
            return;
        }
    counting->is_incomplete = 1;
}

static void count(Counting *counting, const void *returns) {
    uint64_t offset = (uintptr_t)returns - counting->table->base;
    uint32_t site = site_at(counting->table, offset);
    counting->blocks++;
    if (site) go(counting, site);
    else if (is_inside(counting->table, offset)) counting->is_incomplete = 1;
}

/* Called by the program in every block. What an exception or longjmp has left is still open until the next event; the
 * invocation that it came to has gone a way that is not known. */
void perflaw_block(const void *returns) {
    Thread *thread = current_thread;
    if (!thread || !thread->counting || thread->busy) return;
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
    if (__builtin_expect(thread->counting->stack < stack, 0)) {
        thread->busy = 1; /* a handler's events would change the same lists */
        while (thread->counting && thread->counting->stack < stack) pop(thread);
        thread->busy = 0;
    }
    Counting *counting = thread->counting;
    const OpenInvocation *open = thread->top;
    if (!counting) return;
    if (open->frame == counting->frame) count(counting, returns);
    else if (open->stack < stack && is_inside(counting->table, (uintptr_t)returns - counting->table->base))
        counting->is_incomplete = 1;
}

/* ---- the end ---- */

static void write_counts(Thread *thread, Counting *counting) {
    const BranchTable *table = counting->table;
    uint64_t *sums = counting->counts + table->head->edges;
    int written = 0;
    for (uint32_t at = 0; at < table->head->edges; at++)
        for (uint32_t of = 0; counting->counts[at] && of < table->edges[at].outcomes; of++)
            sums[table->outcomes[table->edges[at].first_outcome + of]] += counting->counts[at];
    /* If all are 0, write one, because an invocation without counts would look as if it was not counted. */
    for (uint32_t at = 0; at < table->head->names; at++) {
        double value = (double)sums[at];
        int64_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (!sums[at] && (written || at + 1 < table->head->names)) continue;
        thread_write(thread, bits, counting->frame, table->first_number + (int32_t)at, -1, -1, EVENT_FEATURE);
        written = 1;
    }
}

static void end(Thread *thread) {
    Counting *counting = thread->counting;
    Pause pause = metrics_pause_since(thread, clock_ns(&recording.clock)); /* the call has ended: nothing of this is its */
    go(counting, 0);
    if (!counting->is_incomplete) write_counts(thread, counting);
    else if (!said_incomplete++)
        define_text("branches", "not counted in calls that an exception or longjmp came back to");
    metrics_go_on(thread, pause);
    pop(thread);
}

__attribute__((noinline)) void branches_end(Thread *thread, int64_t frame) {
    KEEP_VECTORS;
    while (thread->counting && thread->counting->frame > frame) pop(thread);
    if (thread->counting && thread->counting->frame == frame) end(thread);
}

/* ---- of a process ---- */

void branches_start(void) {
    const char *wanted = setting("PERFLAW_TARGET_COLLECT");
    branches_wanted = strstr(wanted, "branches") != NULL;
}

/* The least time of several trials to pass so many blocks, in 256ths of a nanosecond each. */
static int64_t blocks_ns_256(void) {
    int64_t least = INT64_MAX;
    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t begun = clock_ns(&recording.clock);
        for (int at = 0; at < TRIAL_BLOCKS; at++) perflaw_block((const void *)16);
        int64_t passed = clock_ns(&recording.clock) - begun;
        if (passed < least) least = passed;
    }
    return least * 256 / TRIAL_BLOCKS;
}

void branches_calibrate(Thread *thread) {
    static const BranchHead head = {.sites = 2, .edges = 1};
    static const Site sites[2] = {{0, 0, 0}, {16, 0, 1}};
    static const Edge edge = {1, 0, 0, 0};
    static const BranchTable table = {.head = &head, .sites = sites, .edges = &edge};
    if (!branches_wanted || thread->top == thread->top_end) return;
    Counting *counting = arena_alloc(&thread->arena, size_of(&table));
    if (!counting) return;
    int64_t idle = blocks_ns_256();
    *counting = (Counting){.table = &table, .stack = UINTPTR_MAX, .last = 1};
    *++thread->top = (OpenInvocation){.stack = UINTPTR_MAX};
    thread->counting = counting;
    int64_t counted = blocks_ns_256();
    thread->top--;
    pop(thread);
    branches_block_ns_256 = counted > idle ? counted - idle : 0;
}

void branches_finish(void) {
    for (int at = 0; at < CAPACITY; at++)
        if (seen[at] && tables[at]) *hook_of(tables[at]) = NULL;
}

void branches_forget(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child: another thread may have held it */
    if (arena.base) arena_destroy(&arena);
    memset(seen, 0, sizeof seen);
    function_count = said_incomplete = 0;
}
