/* Functions by their address. Each thread has a table of its own, so that none waits for another at an event. */
#include "hooks.h"

#include <pthread.h>
#include <signal.h>

#include "../table.h"

enum { FIRST = 256, NAMED = 20 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Arena arena;
static Table numbers, unselected; /* of the process, by address */

void known_forget_all(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child: another thread may have held it */
    if (arena.base) arena_forget(&arena);
    numbers = unselected = (Table){0};
}

uint32_t known_unselected(void) { return unselected.used; }

/* On first sight in this process: the first few that are left out are told as well. */
static uint32_t numbered(Table *table, const void *function, uint32_t low, uint32_t high) {
    uint32_t number = table_get(table, low, high, 0);
    if (number || !table_put(&arena, table, low, high, 0, table->used + 1)) return number;
    number = table->used;
    if (table == &numbers && number < MAX_CODE) tell_function((int32_t)number, function);
    if (table == &unselected && number <= NAMED) tell_function(LEFT_OUT, function);
    return number;
}

static int32_t number_of(const void *function, uint32_t *size) {
    uint32_t low = (uint32_t)(uintptr_t)function, high = (uint32_t)((uintptr_t)function >> 32), number = 0;
    pthread_mutex_lock(&lock);
    int recorded = !hooks.selecting || selected(function, size);
    if (arena.base || !arena_create(&arena, 1ull << 26))
        number = numbered(recorded ? &numbers : &unselected, function, low, high);
    pthread_mutex_unlock(&lock);
    return recorded && number && number < MAX_CODE ? (int32_t)number : LEFT_OUT;
}

static Known *seek(const Thread *thread, const void *function) {
    uint32_t at = (uint32_t)(((uintptr_t)function * 0x9e3779b97f4a7c15ull) >> 40), mask = thread->capacity - 1;
    while (thread->known[at & mask].function && thread->known[at & mask].function != function) at++;
    return &thread->known[at & mask];
}

static int enlarge(Thread *thread) {
    uint32_t old = thread->capacity;
    Known *before = thread->known, *known = arena_alloc(&thread->arena, (old ? 2ull * old : FIRST) * sizeof(Known));
    if (!known) return 0;
    thread->known = known;
    thread->capacity = old ? 2 * old : FIRST;
    for (uint32_t at = 0; at < old; at++)
        if (before[at].function) *seek(thread, before[at].function) = before[at];
    arena_free(&thread->arena, before, old * sizeof(Known));
    return 1;
}

/* A handler that jumped out of here would leave the lock taken. The recorder may have to be waited for. */
static void learn(Thread *thread, Known *known) {
    sigset_t before, every;
    int64_t wall = clock_plain_ns(), spent = hooks.selecting ? cpu_spent_ns() : 0;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    known->number = number_of(known->function, &known->size);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (hooks.selecting) cpu_leave_out(&thread->cpu, clock_plain_ns() - wall, cpu_spent_ns() - spent);
}

static Known *met(Thread *thread, const void *function) {
    if (2 * thread->used >= thread->capacity && !enlarge(thread)) return NULL;
    Known *known = seek(thread, function);
    int64_t since = clock_ns(&hooks.clock);
    *known = (Known){.function = function, .size = INT32_MAX};
    if (function != (void *)calibrate) learn(thread, known);
    thread->used++;
    if (!hooks.fake) thread->taken += clock_ns(&hooks.clock) - since;
    return known;
}

int known_left_out(const Thread *thread, const void *function) {
    const Known *known = thread->capacity ? seek(thread, function) : NULL;
    return known && known->function && known->number == LEFT_OUT;
}

Known *known_find(Thread *thread, const void *function) {
    Known *known = thread->capacity ? seek(thread, function) : NULL;
    return known && known->function ? known : met(thread, function);
}

int32_t known_draw(Thread *thread, Known *known) {
    if (!known->skips && !(known->skips = arena_alloc(&thread->arena, sizeof(Skips)))) return -1;
    int32_t key = skips_draw(known->skips, &thread->chance);
    known->countdown = skips_next(known->skips, &thread->chance);
    return key;
}
