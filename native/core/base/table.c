#include "table.h"

enum { FIRST_CAPACITY = 64 };

/* The position where a key belongs. */
static uint32_t home_of(uint32_t a, uint32_t b, uint32_t c, uint32_t capacity) {
    uint64_t mixed = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15ull ^ (uint64_t)c * 0xC2B2AE3D27D4EB4Full;
    mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9ull;
    return (uint32_t)(mixed >> 32) & (capacity - 1);
}

/* The slot of a key, or the empty one where it would go, which there is because at most half are used. */
static Slot *slot_of(const Table *table, uint32_t a, uint32_t b, uint32_t c) {
    Slot *slots = table->slots;
    uint32_t at = home_of(a, b, c, table->capacity);
    while (slots[at].value && (slots[at].a != a || slots[at].b != b || slots[at].c != c))
        at = (at + 1) & (table->capacity - 1);
    return &slots[at];
}

static int grow(Arena *arena, Table *table) {
    Table larger = {.capacity = table->capacity ? table->capacity * 2 : FIRST_CAPACITY, .used = table->used};
    const Slot *old = table->slots;
    larger.slots = arena_alloc(arena, (uint64_t)larger.capacity * sizeof(Slot));
    if (!larger.slots) return 0;
    for (uint32_t at = 0; at < table->capacity; at++)
        if (old[at].value) *slot_of(&larger, old[at].a, old[at].b, old[at].c) = old[at];
    arena_free(arena, table->slots, (uint64_t)table->capacity * sizeof(Slot));
    *table = larger;
    return 1;
}

uint32_t table_get(const Table *table, uint32_t a, uint32_t b, uint32_t c) {
    return table->used ? slot_of(table, a, b, c)->value : 0;
}

int table_put(Arena *arena, Table *table, uint32_t a, uint32_t b, uint32_t c, uint32_t value) {
    if (table->used * 2 >= table->capacity && !grow(arena, table)) return 0;
    Slot *slot = slot_of(table, a, b, c);
    table->used += !slot->value;
    *slot = (Slot){a, b, c, value};
    return 1;
}

/* Fill the gap that a deleted slot leaves, so that no tombstones pile up (Knuth, TAOCP 3, 6.4, algorithm R). */
static void close_gap(Slot *slots, uint32_t gap, uint32_t capacity) {
    uint32_t mask = capacity - 1, at = gap;
    for (;;) {
        at = (at + 1) & mask;
        if (!slots[at].value) break;
        uint32_t home = home_of(slots[at].a, slots[at].b, slots[at].c, capacity);
        if (((at - home) & mask) < ((at - gap) & mask)) continue; /* its home lies behind the gap, so it stays */
        slots[gap] = slots[at];
        gap = at;
    }
    slots[gap] = (Slot){0};
}

uint32_t table_pop(Table *table, uint32_t a, uint32_t b, uint32_t c) {
    if (!table->used) return 0;
    Slot *slot = slot_of(table, a, b, c);
    uint32_t value = slot->value;
    if (value) {
        close_gap(table->slots, (uint32_t)(slot - table->slots), table->capacity);
        table->used--;
    }
    return value;
}
