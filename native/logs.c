#include "logs.h"

/* The whole part of a square root, a bit at a time. */
static uint64_t root_of(unsigned __int128 square) {
    uint64_t root = 0;
    for (uint64_t bit = 1ull << 63; bit; bit >>= 1) {
        unsigned __int128 larger = root | bit;
        if (larger * larger <= square) root |= bit;
    }
    return root;
}

/* 2^(63 + j/1024) as a product of roots of two: no library of floating point is as exact. */
static uint64_t bound_of(const uint64_t *roots, unsigned j) {
    uint64_t bound = 1ull << 63;
    for (unsigned bit = 0; bit < LOG_BITS; bit++)
        if (j >> (LOG_BITS - 1 - bit) & 1) bound = (uint64_t)((unsigned __int128)bound * roots[bit] >> 63);
    return bound + (j > 0);
}

void logs_begin(Logs *logs) {
    uint64_t roots[LOG_BITS], before = 0; /* 2^(63 + 1/2), 2^(63 + 1/4), ... */
    for (unsigned bit = 0; bit < LOG_BITS; bit++)
        before = roots[bit] = root_of(bit ? (unsigned __int128)before << 63 : (unsigned __int128)1 << 127);
    for (unsigned j = 0; j < LOG_UNIT; j++) logs->bounds[j] = bound_of(roots, j);
    logs->bounds[LOG_UNIT] = UINT64_MAX;
    for (unsigned cell = 0, j = 0; cell < LOG_UNIT; cell++) {
        uint64_t begin = (1ull << 63) + ((uint64_t)cell << (63 - LOG_BITS));
        while (logs->bounds[j + 1] <= begin) j++;
        logs->guess[cell] = (uint16_t)j;
    }
}
