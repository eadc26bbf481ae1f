#include "lanes.h"

void *lane_find(const Lane *list, uint64_t metric) {
    while (list && list->metric != metric) list = list->next;
    return (void *)list;
}

void *lane_ensure(Arena *arena, Lane **list, uint64_t metric, uint64_t size) {
    Lane *known = lane_find(*list, metric);
    if (known) return known;
    Lane *new = arena_alloc(arena, size);
    if (!new) return NULL;
    *new = (Lane){*list, metric};
    return *list = new;
}

int64_t lane_value(const Lane *changes, uint64_t metric) {
    const Change *change = lane_find(changes, metric);
    return change ? change->value : 0;
}

void lane_add(Arena *arena, Lane **changes, uint64_t metric, int64_t value) {
    Change *change = lane_ensure(arena, changes, metric, sizeof(Change));
    if (change) change->value = plus(change->value, value);
}

void lane_merge(Arena *arena, Lane **changes, const Lane *from) {
    for (; from; from = from->next) lane_add(arena, changes, from->metric, ((const Change *)from)->value);
}

void lane_clear(Arena *arena, Lane **changes) {
    while (*changes) {
        Lane *first = *changes;
        *changes = first->next;
        arena_free(arena, first, sizeof(Change));
    }
}
