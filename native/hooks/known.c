/* Functions by their address. Each thread has a table of its own, so that none waits for another at an event. */
#include "hooks.h"

#include <pthread.h>

#include "../table.h"

enum { FIRST = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Arena arena;
static Table numbers; /* of the process, by address */

void known_forget_all(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child: another thread may have held it */
    if (arena.base) arena_forget(&arena);
    numbers = (Table){0};
}

/* The number of a function in this process, told on first sight. */
static int32_t number_of(const void *function) {
    uint32_t low = (uint32_t)(uintptr_t)function, high = (uint32_t)((uintptr_t)function >> 32);
    pthread_mutex_lock(&lock);
    uint32_t number = 0;
    if (arena.base || !arena_create(&arena, 1ull << 26)) number = table_get(&numbers, low, high, 0);
    int is_new = arena.base && !number && table_put(&arena, &numbers, low, high, 0, numbers.used + 1);
    if (is_new) {
        number = numbers.used;
        if (number < MAX_CODE) tell_function((int32_t)number, function);
    }
    pthread_mutex_unlock(&lock);
    return number && number < MAX_CODE ? (int32_t)number : LEFT_OUT;
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

static Known *met(Thread *thread, const void *function) {
    if (2 * thread->used >= thread->capacity && !enlarge(thread)) return NULL;
    Known *known = seek(thread, function);
    int64_t since = clock_ns(&hooks.clock);
    *known = (Known){.function = function};
    if (function != (void *)calibrate) known->number = number_of(function);
    thread->used++;
    if (!hooks.fake) thread->taken += clock_ns(&hooks.clock) - since;
    return known;
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
