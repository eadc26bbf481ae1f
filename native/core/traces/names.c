#include "names.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t hash_of(const Names *names, Slice text) {
    uint64_t mixed = names->seed ^ text.size, word;
    const char *at = text.at;
    for (size_t left = text.size; left; at += 8) {
        size_t size = left < 8 ? left : 8;
        word = 0;
        memcpy(&word, at, size);
        left -= size;
        unsigned __int128 wide = (unsigned __int128)(mixed ^ word) * 0x9E3779B97F4A7C15ull;
        mixed = (uint64_t)wide ^ (uint64_t)(wide >> 64) ^ names->seed;
    }
    return mixed ^ mixed >> 32;
}

Slice names_text(const Names *names, uint32_t number) {
    uint64_t begin = names->ends[number - 1];
    return (Slice){names->bytes + begin, names->ends[number] - begin};
}

/* The slot of a text, or the empty one where it would go. */
static uint32_t *slot_of(const Names *names, Slice text) {
    uint32_t mask = names->slot_count - 1, at = (uint32_t)hash_of(names, text) & mask;
    for (; names->slots[at]; at = (at + 1) & mask) {
        Slice known = names_text(names, names->slots[at]);
        if (known.size == text.size && !memcmp(known.at, text.at, text.size)) break;
    }
    return &names->slots[at];
}

static int grow(Names *names) {
    uint32_t count = names->slot_count ? names->slot_count * 2 : 256;
    uint32_t *slots = calloc(count, sizeof *slots);
    uint64_t *ends = realloc(names->ends, (count / 2 + 1) * sizeof *ends);
    if (ends) names->ends = ends;
    if (!slots || !ends) return free(slots), 0;
    if (!names->slot_count) { /* so that nobody can write a file of texts that all have one slot */
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        names->seed = (uint64_t)now.tv_nsec * 0xD6E8FEB86659FD93ull ^ (uint64_t)(uintptr_t)slots;
        names->ends[0] = 0;
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = count;
    for (uint32_t number = 1; number <= names->count; number++) *slot_of(names, names_text(names, number)) = number;
    return 1;
}

uint32_t names_find(const Names *names, Slice text) { return names->slot_count ? *slot_of(names, text) : 0; }

uint32_t names_number(Names *names, Slice text) {
    uint32_t known = names_find(names, text);
    if (known) return known;
    if (names->count >= UINT32_MAX / 4) return 0;
    if (names->count * 2 >= names->slot_count && !grow(names)) return 0;
    if (names->size + text.size > names->capacity) {
        uint64_t capacity = (names->size + text.size) * 2 + 4096;
        char *bytes = realloc(names->bytes, capacity);
        if (!bytes) return 0;
        names->bytes = bytes;
        names->capacity = capacity;
    }
    if (text.size) memcpy(names->bytes + names->size, text.at, text.size);
    uint32_t *slot = slot_of(names, text);
    names->ends[++names->count] = names->size += text.size;
    return *slot = names->count;
}

void names_free(Names *names) {
    free(names->bytes);
    free(names->ends);
    free(names->slots);
    *names = (Names){0};
}
