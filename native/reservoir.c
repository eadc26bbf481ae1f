#include "reservoir.h"

#include <string.h>

#include "bag.h"
#include "grid.h"
#include "moments.h"

static uint64_t bytes(uint64_t kids, uint64_t features) {
    return sizeof(Sample) + kids * sizeof(Touch) + features * sizeof(Feature);
}

uint64_t scramble(uint64_t number) {
    uint64_t mixed = number * 0x9E3779B97F4A7C15ull;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBull;
    return (mixed ^ mixed >> 31) >> 2;
}

static int above(const Ticket *a, const Ticket *b) {
    return a->key != b->key ? a->key > b->key : a->sequence > b->sequence;
}

static void sift_down(Ticket *heap, uint32_t size, Ticket ticket) {
    uint32_t at = 0, below;
    while ((below = 2 * at + 1) < size) {
        if (below + 1 < size && above(&heap[below + 1], &heap[below])) below++;
        if (!above(&heap[below], &ticket)) break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = ticket;
}

static void sift_up(Ticket *heap, uint32_t at, Ticket ticket) {
    for (; at && above(&ticket, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = ticket;
}

static int make_room(Arena *arena, Bottom *bottom) {
    uint32_t capacity = bottom->capacity ? bottom->capacity * 2 : 4;
    Offset larger = arena_alloc(arena, capacity * sizeof(Ticket)), old = bottom->heap;
    if (!larger) return 0;
    if (old) memcpy(arena_at(arena, larger), arena_at(arena, old), bottom->kept * sizeof(Ticket));
    arena_publish();
    bottom->heap = larger;
    arena_publish();
    if (old) arena_free(arena, old, bottom->capacity * sizeof(Ticket));
    bottom->capacity = capacity;
    return 1;
}

static void release(Arena *arena, Offset block) {
    Sample *sample = arena_at(arena, block);
    if (!--sample->references) arena_free(arena, block, bytes(sample->kids, sample->features));
}

/* Keep a ticket whose key is below the bound; of more than size the largest goes. */
static void keep(Arena *arena, Bottom *bottom, Ticket ticket) {
    if (bottom->kept == bottom->capacity && bottom->kept < bottom->size && !make_room(arena, bottom)) return;
    Ticket *heap = arena_at(arena, bottom->heap);
    ((Sample *)arena_at(arena, ticket.sample))->references++;
    if (bottom->kept < bottom->size) {
        sift_up(heap, bottom->kept, ticket);
        arena_publish();
        bottom->kept++;
    } else {
        Offset gone = heap[0].sample;
        sift_down(heap, bottom->kept, ticket);
        arena_publish();
        release(arena, gone);
    }
    if (bottom->kept == bottom->size) bottom->bound = heap[0].key;
}

static Offset copy(Arena *arena, uint64_t sequence, const Invocation *from) {
    const Bag *kids = bag_at(arena, from->kids);
    uint32_t touched = bag_count(kids), features = row_count(arena, from->features);
    Offset block = arena_alloc(arena, bytes(touched, features));
    if (!block) return 0;
    Sample *sample = arena_at(arena, block);
    *sample = (Sample){sequence, from->started, from->x, from->node, from->key, 0, touched, features, 0};
    if (touched) memcpy(sample_kids(sample), kids->items, touched * sizeof(Touch));
    if (features) memcpy(sample_features(sample), row_items(arena, from->features), features * sizeof(Feature));
    return block;
}

static Bottom *stratum_of(Arena *arena, Reservoir *reservoir, unsigned stratum) {
    Offset *place = &reservoir->strata[stratum];
    if (!*place && (*place = arena_alloc(arena, sizeof(Bottom))))
        *(Bottom *)arena_at(arena, *place) = (Bottom){.size = PER_STRATUM, .bound = 1ull << 62};
    return *place ? arena_at(arena, *place) : NULL;
}

static Reservoir *opened(Arena *arena, Offset *place) {
    if (!*place && (*place = arena_alloc(arena, sizeof(Reservoir))))
        ((Reservoir *)arena_at(arena, *place))->uniform = (Bottom){.size = UNIFORM, .bound = 1ull << 62};
    return *place ? arena_at(arena, *place) : NULL;
}

void reservoir_offer(Arena *arena, Offset *place, uint64_t sequence, const Invocation *invocation) {
    Reservoir *reservoir = opened(arena, place);
    Bottom *stratum = reservoir ? stratum_of(arena, reservoir, bit_length(invocation->x)) : NULL;
    if (!stratum) return;
    uint64_t key = scramble(sequence ^ arena->head->tree.seed);
    int uniform = invocation->key >= 0 && (uint64_t)invocation->key < reservoir->uniform.bound;
    int apart = key < stratum->bound;
    stratum->offered++;
    if (!uniform && !apart) return;
    Offset sample = copy(arena, sequence, invocation);
    if (!sample) return;
    ((Sample *)arena_at(arena, sample))->references = 1; /* ours, while both parts take theirs */
    if (uniform) keep(arena, &reservoir->uniform, (Ticket){(uint64_t)invocation->key, sequence, sample});
    if (apart) keep(arena, stratum, (Ticket){key, sequence, sample});
    release(arena, sample);
}
