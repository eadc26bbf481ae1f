#include "general_registers.h"

#include "functions.h"

#include <pthread.h>

#include "core/base/table.h"
#include "definitions.h"
#include "metrics.h"
#include "selection.h"
#include "threads.h"
#include "vectors.h"

enum { FIRST_CAPACITY = 256, MAX_NAMED = 20 };
/* Reading the first calls within observations takes a tenth of the time at most; beyond it, observations go without. */
enum { OBSERVING_SHARE = 10, FREE_OBSERVING_NS = 1000000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Arena arena;
static Table numbers, unselected; /* of the process, by address */

void functions_forget(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child: another thread may have held it */
    if (arena.base) arena_destroy(&arena);
    numbers = unselected = (Table){0};
}

uint32_t functions_unselected(void) { return unselected.used; }

/* ---- numbers of the process ---- */

/* The number of a function in one of the two tables. On first sight it is defined; of the unselected ones only the
 * first few are. */
static uint32_t number_in(Table *table, const void *function, const LoadedPlace *place) {
    uint32_t low = (uint32_t)(uintptr_t)function, high = (uint32_t)((uintptr_t)function >> 32);
    uint32_t number = table_get(table, low, high, 0);
    if (number || !table_put(&arena, table, low, high, 0, table->used + 1)) return number;
    number = table->used;
    if (table == &numbers && number < MAX_CODE) define_function((int32_t)number, function, place);
    if (table == &unselected && number <= MAX_NAMED) define_function(NOT_SELECTED, function, place);
    return number;
}

static int has_number(const void *function) {
    pthread_mutex_lock(&lock);
    uint32_t number = table_get(&numbers, (uint32_t)(uintptr_t)function, (uint32_t)((uintptr_t)function >> 32), 0);
    pthread_mutex_unlock(&lock);
    return number != 0;
}

static int32_t number_of(const void *function, uint32_t *size, int *found) {
    uint32_t number = 0;
    LoadedPlace place;
    if (recording.has_selection || !has_number(function)) loaded_place(function, &place);
    pthread_mutex_lock(&lock);
    *found = recording.has_selection ? selection_find(function, &place, size) : SELECTED;
    int recorded = *found != UNSELECTED;
    if (arena.base || !arena_create(&arena, 1ull << 26))
        number = number_in(recorded ? &numbers : &unselected, function, &place);
    pthread_mutex_unlock(&lock);
    return recorded && number && number < MAX_CODE ? (int32_t)number : NOT_SELECTED;
}

int functions_are_apart(const void *code) {
    LoadedPlace place;
    loaded_place(code, &place);
    pthread_mutex_lock(&lock);
    int are_apart = selection_is_apart(&place);
    pthread_mutex_unlock(&lock);
    return are_apart;
}

/* ---- the table of a thread ---- */

/* The entry of a function, or the empty one where it would go. */
static KnownFunction *entry_of(const Thread *thread, const void *function) {
    KnownFunction *at = function_place(thread, function), *end = thread->functions + thread->function_capacity;
    while (at->function && at->function != function)
        if (++at == end) at = thread->functions;
    return at;
}

static int enlarge(Thread *thread) {
    uint32_t old = thread->function_capacity, capacity = old ? 2 * old : FIRST_CAPACITY;
    KnownFunction *smaller = thread->functions, *larger = arena_alloc(&thread->arena, capacity * sizeof(KnownFunction));
    if (!larger) return 0;
    thread->functions = larger;
    thread->function_capacity = capacity;
    for (uint32_t at = 0; at < old; at++)
        if (smaller[at].function) *entry_of(thread, smaller[at].function) = smaller[at];
    arena_free(&thread->arena, smaller, old * sizeof(KnownFunction));
    return 1;
}

int functions_begin(Thread *thread) { return thread->function_capacity || enlarge(thread); }

static void fetch_number(KnownFunction *known) {
    uint32_t size = known->size;
    int found;
    known->number = number_of(known->function, &size, &found);
    known->size = size & INT32_MAX;
    known->is_observed = found == OBSERVED && known->number != NOT_SELECTED;
}

static KnownFunction *add(Thread *thread, const void *function) {
    if (2 * thread->function_count >= thread->function_capacity && !enlarge(thread)) return NULL;
    KnownFunction *known = entry_of(thread, function);
    Pause pause = metrics_pause(thread);
    *known = (KnownFunction){.function = function, .size = INT32_MAX};
    if (function != recording.calibrated) fetch_number(known);
    if (known->is_observed) thread_write(thread, thread->last_stamp, 0, known->number, -1, -1, EVENT_OBSERVE);
    thread->function_count++;
    metrics_go_on(thread, pause);
    return known;
}

/* Signals are held meanwhile: a handler that jumped out of here would leave a lock taken, or a function without its number. */
static __attribute__((noinline)) KnownFunction *add_function(Thread *thread, const void *function) {
    KEEP_VECTORS;
    Interruptions before;
    signals_hold(&before);
    KnownFunction *known = add(thread, function);
    signals_release(&before);
    return known;
}

int function_is_unselected(const Thread *thread, const void *function) {
    const KnownFunction *known = entry_of(thread, function);
    return known->function && known->number == NOT_SELECTED;
}

KnownFunction *function_find(Thread *thread, const void *function) {
    KnownFunction *known = entry_of(thread, function);
    return known->function ? known : add_function(thread, function);
}

static __attribute__((noinline)) int32_t choose(Thread *thread, KnownFunction *known, const ReadingTime *time, int *read) {
    KEEP_VECTORS;
    if (!known->sampler && !(known->sampler = arena_alloc(&thread->arena, sizeof(Sampler)))) return -1;
    SamplerChoice choice = sampler_choose(known->sampler, time, SKIPS_SAMPLE_SIZE, &thread->random_state);
    if (choice.is_bounded) define_sample(known->number, choice.bits);
    *read = choice.is_read;
    return choice.key;
}

int32_t function_look(Thread *thread, KnownFunction *known, int64_t now, int *read) {
    int32_t key = -1;
    int64_t own_ns = now - thread->started_ns - thread->off_ns - thread->queued_ns; /* not the recorder's or other programs' */
    ReadingTime time = {own_ns, thread->reading_ns, recording.fake_clock};
    if (known->is_observed) time.reading_ns = 0; /* the sample of observations is not made smaller */
    if (known->sampler && !sampler_is_candidate(known->sampler)) *read = sampler_pass(known->sampler, &time);
    else key = choose(thread, known, &time, read);
    known->countdown = known->sampler ? known->sampler->span : 0;
    return key;
}

/* What has the observation's height may be a later invocation. */
static int is_within_observation(const Thread *thread) {
    int64_t height = thread->observed_height;
    return height && thread->top - thread->bottom > height && thread->bottom[height].frame == thread->observed_frame;
}

__attribute__((noinline)) int function_observe(Thread *thread, KnownFunction *known, int64_t now, int is_sampled) {
    if (is_within_observation(thread)) {
        Sampler *sampler = known->sampler;
        if (!sampler || sampler->is_futile || sampler->observation == thread->observed_frame) return 0;
        sampler->observation = thread->observed_frame;
        return 1;
    }
    int is_cheap = (thread->observing_ns - FREE_OBSERVING_NS) * OBSERVING_SHARE <= now - thread->started_ns;
    thread->observed_height = known->is_observed && is_sampled && is_cheap ? thread->top - thread->bottom : 0;
    thread->observed_frame = thread->top->frame;
    return 0;
}
