#include "skips.h"

#include <math.h>

uint64_t skips_chance(uint64_t *state) {
    uint64_t mixed = *state += 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return mixed ^ mixed >> 31;
}

static uint32_t drawn_below(const Skips *skips, uint32_t bits) {
    uint32_t drawn = 0;
    for (uint32_t at = 0; at <= bits; at++) drawn += skips->drawn[at];
    return drawn;
}

int32_t skips_draw(Skips *skips, uint64_t *state) {
    uint32_t bits = SKIPS_BITS - skips->above, key = (uint32_t)(skips_chance(state) & ((1ull << bits) - 1));
    skips->drawn[key ? 32 - __builtin_clz(key) : 0]++;
    if (bits > 1 && drawn_below(skips, bits - 1) >= SKIPS_KEPT) skips->above++;
    return (int32_t)key;
}

int64_t skips_next(const Skips *skips, uint64_t *state) {
    if (!skips->above) return 0;
    double uniform = ((double)(skips_chance(state) >> 11) + 0.5) * 0x1p-53;
    double gap = log(uniform) / log1p(-ldexp(1.0, -(int)skips->above));
    return gap < 1e15 ? (int64_t)gap : (int64_t)1e15;
}
