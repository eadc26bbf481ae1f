#include "skips.h"

#include <math.h>

uint64_t skips_random(uint64_t *state) {
    uint64_t mixed = *state += 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return mixed ^ mixed >> 31;
}

/* How many priorities of at most so many bits were drawn. */
static uint32_t count_up_to(const Skips *skips, uint32_t bits) {
    uint32_t drawn = 0;
    for (uint32_t at = 0; at <= bits; at++) drawn += skips->drawn[at];
    return drawn;
}

uint32_t skips_sample_size(uint32_t functions) {
    uint32_t size = SKIPS_SAMPLE_SIZE, many = SKIPS_MANY, sampled = functions / 5 * 4;
    if (sampled <= many) return size;
    for (size /= 4; size > 16 && sampled > (many *= 2);) size /= 2;
    return size;
}

int32_t skips_draw(Skips *skips, uint32_t size, uint64_t *state) {
    uint32_t bits = SKIPS_BITS - skips->halvings, key = (uint32_t)(skips_random(state) & ((1ull << bits) - 1));
    skips->drawn[key ? 32 - __builtin_clz(key) : 0]++;
    if (bits > 1 && count_up_to(skips, bits - 1) >= size) skips->halvings++;
    return (int32_t)key;
}

int64_t skips_next(const Skips *skips, uint64_t *state) {
    if (!skips->halvings) return 0;
    double uniform = ((double)(skips_random(state) >> 11) + 0.5) * 0x1p-53;
    double gap = log(uniform) / log1p(-ldexp(1.0, -(int)skips->halvings));
    return gap < 1e15 ? (int64_t)gap : (int64_t)1e15;
}
