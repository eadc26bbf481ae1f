#include "dynamic_types.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "compiled/definitions.h"
#include "compiled/threads.h"

enum { CAPACITY = 1024, MAX_TYPES = CAPACITY / 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t seen[CAPACITY]; /* a hash table with open addressing; an address is added and never removed */
static int32_t numbers[CAPACITY];       /* written before the address */
static int32_t count;

void dynamic_types_forget(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child: another thread may have held it */
    memset(seen, 0, sizeof seen);
    count = 0;
}

/* The place of an address, or the empty one where it would go. */
static uint32_t place_of(uint64_t table) {
    uint32_t at = (uint32_t)((table * 0x9e3779b97f4a7c15ull) >> 54), mask = CAPACITY - 1;
    uint64_t known;
    while ((known = atomic_load_explicit(&seen[at & mask], memory_order_acquire)) && known != table) at++;
    return at & mask;
}

/* Addresses that lie in no loaded file are not remembered: a wild pointer brings a new one each time. */
static int32_t add(uint64_t table) {
    Interruptions before;
    LoadedPlace loaded;
    signals_hold(&before); /* a handler that jumped out of here would leave the lock taken */
    loaded_place((const void *)(uintptr_t)table, &loaded);
    pthread_mutex_lock(&lock);
    uint32_t place = place_of(table);
    if (!seen[place] && count < MAX_TYPES && define_virtual_table(count + 1, (const void *)(uintptr_t)table, &loaded)) {
        numbers[place] = ++count;
        atomic_store_explicit(&seen[place], table, memory_order_release);
    }
    int32_t number = seen[place] ? numbers[place] : 0;
    pthread_mutex_unlock(&lock);
    signals_release(&before);
    return number;
}

int32_t dynamic_type_number(uint64_t table) {
    if (!table || table % sizeof(void *)) return 0;
    uint32_t place = place_of(table);
    return atomic_load_explicit(&seen[place], memory_order_relaxed) ? numbers[place] : add(table);
}
