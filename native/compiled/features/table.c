#include "table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "compiled/definitions.h"
#include "compiled/questions.h"
#include "compiled/threads.h"
#include "core/base/table.h"

#define MAGIC 0x3154454650465250ull /* "PRFPFET1" */
enum { MAX_TABLES = 4096, MAX_FEATURES = 256, MAX_TERMS = 1024 };

typedef struct TableHead {
    uint64_t magic;
    uint32_t calls, reads, features, terms, names, unused;
} TableHead;
typedef struct HookCall {
    uint64_t returns, function; /* from where the file is loaded; function: 0 if it may be any */
    uint32_t first_read, first_feature, first_term;
    uint16_t reads, features, terms, unused;
} HookCall;
/* A table and where its code is loaded. */
typedef struct LoadedTable {
    const void *base;
    const TableHead *head;
    const HookCall *calls;
    const Read *reads;
    const Feature *features;
    const Term *terms;
    const char *names;
    Answer answer; /* that holds all of it */
} LoadedTable;

_Static_assert(sizeof(TableHead) == 32 && sizeof(HookCall) == 40 && sizeof(Read) == 16 && sizeof(Feature) == 32 &&
                   sizeof(Term) == 16,
               "the rows of record/compiled/features/tables.py");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LoadedTable tables[MAX_TABLES]; /* a forked child has these mappings too */
static int table_count;
static Arena arena;     /* of the programs, which know numbers of this process */
static Table programs;  /* by the address that is returned to */
static _Atomic int32_t last_number;

void table_forget(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child: another thread may have held it */
    if (arena.base) arena_destroy(&arena);
    programs = (Table){0};
    last_number = 0;
}

/* ---- tables ---- */

void tables_drop(void) {
    while (table_count) question_drop(tables[--table_count].answer);
}

/* Add a table if the answer has room for all that its head announces. */
static void add_table(const void *base, Answer answer) {
    const TableHead *head = answer.data;
    if (!head || answer.size < sizeof *head || head->magic != MAGIC || table_count == MAX_TABLES) return;
    const HookCall *calls = (const HookCall *)(head + 1);
    uint64_t size = sizeof *head + (uint64_t)head->calls * sizeof(HookCall) + (uint64_t)head->reads * sizeof(Read) +
                    (uint64_t)head->features * sizeof(Feature) + (uint64_t)head->terms * sizeof(Term) + head->names;
    if (size > answer.size || !head->names || ((const char *)answer.data)[size - 1]) return;
    const Read *reads = (const Read *)(calls + head->calls);
    const Feature *features = (const Feature *)(reads + head->reads);
    const Term *terms = (const Term *)(features + head->features);
    tables[table_count++] = (LoadedTable){base, head, calls, reads, features, terms, (const char *)(terms + head->terms), answer};
}

static const HookCall *call_in(const LoadedTable *table, uint64_t returns) {
    uint64_t low = 0, high = table->head->calls;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (table->calls[middle].returns < returns) low = middle + 1;
        else high = middle;
    }
    return low < table->head->calls && table->calls[low].returns == returns ? &table->calls[low] : NULL;
}

static const HookCall *find_call(const void *base, uint64_t returns, int first, const LoadedTable **table) {
    for (int at = first; at < table_count; at++)
        if (tables[at].base == base) {
            const HookCall *call = call_in(*table = &tables[at], returns);
            if (call) return call;
        }
    return NULL;
}

/* The hook call in a table that is here already, or in the one that the recorder is asked for. */
static const HookCall *find_or_ask(const void *returns, const LoadedPlace *place, const LoadedTable **table) {
    char text[4096 + 64];
    const void *base = place->base;
    uint64_t offset = (uint64_t)((const char *)returns - (const char *)base);
    const HookCall *call = find_call(base, offset, 0, table);
    if (call || !base) return call;
    int first = table_count;
    snprintf(text, sizeof text, "features %llx %s", (unsigned long long)offset, place->file);
    add_table(base, question_ask(text));
    return find_call(base, offset, first, table);
}

/* ---- programs ---- */

static int is_number(const Feature *feature) {
    unsigned size = feature->size;
    return size == 1 || size == 2 || size == 4 || size == 8 || (size == 16 && feature->kind == FLOATING);
}

/* Whether everything of a program stays within its block: what interprets it does not look again. */
static int is_sound(const CallProgram *program, uint32_t terms, uint32_t names) {
    for (int at = 0; at < program->read_count; at++) {
        const Read *read = &program->reads[at];
        if (read->pointer > BLOCK_BYTES - 8 || read->to < sizeof(Registers) || read->to + read->size > BLOCK_BYTES) return 0;
        if (read->needs != ALWAYS && read->needs >= at) return 0;
    }
    for (int at = 0; at < program->feature_count; at++) {
        const Feature *feature = &program->features[at];
        uint64_t count = feature->kind >= UNSIGNED_SUM && feature->kind <= FLOATING_SUM ? feature->count : 1;
        if (feature->kind == STRING_LENGTH) count = 2;
        if (feature->kind >= FEATURE_KINDS || feature->name >= names) return 0;
        if (!is_number(feature) || feature->at + count * feature->size > BLOCK_BYTES || feature->shift > 63) return 0;
        if (feature->needs != ALWAYS && feature->needs >= program->read_count) return 0;
        if ((uint64_t)feature->first_term + feature->terms > terms) return 0;
    }
    for (uint32_t at = 0; at < terms; at++) {
        const Term *term = &program->terms[at];
        int low_is_sound = term->low == NO_POSITION || term->low <= BLOCK_BYTES - 8;
        if (term->high > BLOCK_BYTES - 8 || !low_is_sound || term->divisor < 1 || term->size > 8) return 0;
        if (term->high_needs != ALWAYS && term->high_needs >= program->read_count) return 0;
        if (term->low_needs != ALWAYS && term->low_needs >= program->read_count) return 0;
    }
    return 1;
}

static const void *copy(const void *rows, size_t size) {
    void *block = arena_alloc(&arena, size ? size : 1);
    return block ? memcpy(block, rows, size) : NULL;
}

static CallProgram *make_program(const LoadedTable *table, const HookCall *call) {
    const TableHead *head = table->head;
    if ((uint64_t)call->first_read + call->reads > head->reads || call->reads > MAX_READS) return NULL;
    if ((uint64_t)call->first_feature + call->features > head->features || call->features > MAX_FEATURES) return NULL;
    if ((uint64_t)call->first_term + call->terms > head->terms || call->terms > MAX_TERMS) return NULL;
    CallProgram *program = arena_alloc(&arena, sizeof *program);
    if (!program) return NULL;
    *program = (CallProgram){
        .reads = copy(table->reads + call->first_read, call->reads * sizeof(Read)),
        .features = copy(table->features + call->first_feature, call->features * sizeof(Feature)),
        .terms = copy(table->terms + call->first_term, call->terms * sizeof(Term)),
        .base = (uint64_t)(uintptr_t)function_address(table->base),
        .read_count = call->reads,
        .feature_count = call->features,
    };
    if (!program->reads || !program->features || !program->terms || !is_sound(program, call->terms, head->names)) return NULL;
    return program;
}

int32_t table_reserve(int32_t count) { return atomic_fetch_add(&last_number, count) + 1; }

/* A program and its features' numbers, which are new. */
static CallProgram *define_program(
    const void *returns, const LoadedPlace *place, const void *function, int32_t function_number) {
    const LoadedTable *table = NULL;
    const HookCall *call = find_or_ask(returns, place, &table);
    if (!call) return NULL;
    int is_other = call->function && call->function != (uint64_t)((const char *)function - (const char *)table->base);
    CallProgram *program = is_other || !call->features ? NULL : make_program(table, call);
    if (!program) return NULL;
    program->first_number = table_reserve(program->feature_count);
    for (int at = 0; at < program->feature_count; at++)
        define_feature(program->first_number + at, function_number, table->names + program->features[at].name);
    return program;
}

const CallProgram *table_find(const void *returns, const void *function, int32_t function_number) {
    const uint32_t NONE = UINT32_MAX; /* no block has this number */
    uint32_t low = (uint32_t)(uintptr_t)returns, high = (uint32_t)((uintptr_t)returns >> 32);
    CallProgram *program = NULL;
    Interruptions before;
    LoadedPlace place;
    signals_hold(&before); /* a handler that jumped out of here would leave the lock taken */
    loaded_place(returns, &place);
    pthread_mutex_lock(&lock);
    if (arena.base || !arena_create(&arena, 1ull << 28)) {
        uint32_t known = table_get(&programs, low, high, 0);
        if (known && known != NONE) program = arena_block(&arena, known);
        if (!known) {
            program = define_program(returns, &place, function, function_number);
            table_put(&arena, &programs, low, high, 0, program ? arena_number(&arena, program) : NONE);
        }
    }
    pthread_mutex_unlock(&lock);
    signals_release(&before);
    return program;
}
