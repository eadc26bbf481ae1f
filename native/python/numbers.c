#include "numbers.h"

#include <stdlib.h>
#include <string.h>

typedef struct Slot {
    uint64_t key;
    int32_t number; /* 0 marks an empty slot */
} Slot;

/* A hash table with open addressing, at most half full; the capacity is a power of two. */
typedef struct Numbers {
    Slot *slots;
    uint32_t count, capacity;
} Numbers;
static Numbers components, features, types;

static void clear(Numbers *numbers) {
    free(numbers->slots);
    *numbers = (Numbers){0};
}

/* The slot of a key, or the empty one where it would go. */
static Slot *slot_of(const Numbers *numbers, uint64_t key) {
    uint32_t at = (uint32_t)(key ^ key >> 32), mask = numbers->capacity - 1;
    while (numbers->slots[at & mask].number && numbers->slots[at & mask].key != key) at++;
    return &numbers->slots[at & mask];
}

static int enlarge(Numbers *numbers) {
    Numbers larger = {.capacity = numbers->capacity ? numbers->capacity * 2 : 256, .count = numbers->count};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots) return 0;
    for (uint32_t at = 0; at < numbers->capacity; at++)
        if (numbers->slots[at].number) *slot_of(&larger, numbers->slots[at].key) = numbers->slots[at];
    free(numbers->slots);
    *numbers = larger;
    return 1;
}

static int32_t number_of(Numbers *numbers, uint64_t key, uint32_t max, int *is_new) {
    *is_new = 0;
    if (numbers->count * 2 >= numbers->capacity && !enlarge(numbers)) return 0;
    Slot *slot = slot_of(numbers, key);
    if (!slot->number && numbers->count < max) {
        *slot = (Slot){key, (int32_t)++numbers->count};
        *is_new = 1;
    }
    return slot->number;
}

int32_t number_of_component(const Function *function, int *is_new) {
    PyObject *file = function->code->co_filename;
    uint64_t key = hash_part(HASH_START, function->name, strlen(function->name));
    key = hash_part(key, PyUnicode_DATA(file), (size_t)(PyUnicode_GET_LENGTH(file) * (Py_ssize_t)PyUnicode_KIND(file)));
    key = hash_part(key, &function->code->co_firstlineno, sizeof function->code->co_firstlineno);
    return number_of(&components, key, MAX_COMPONENTS, is_new);
}

uint32_t numbers_of_components(void) { return components.count; }

int32_t number_of_aside(const char *name, int *is_new) {
    return number_of(&components, hash_part(HASH_START, name, strlen(name)), MAX_COMPONENTS, is_new);
}

int32_t number_of_feature(const Function *function, const char *name, int *is_new) {
    uint64_t key = hash_part(0x9e3779b97f4a7c15ull, &function->number, sizeof function->number);
    return number_of(&features, hash_part(key, name, strlen(name)), UINT32_MAX >> 1, is_new);
}

int32_t number_of_type(const char *name, size_t length, int *is_new) {
    return number_of(&types, hash_part(HASH_START, name, length), UINT32_MAX >> 1, is_new);
}

void numbers_forget(void) {
    clear(&components);
    clear(&features);
    clear(&types);
}
