/* Whole logarithms: floor(1024 log2 x) of a whole number, exact below 2^50 (13 days in ns). With them a duration finds its
 * bucket of the finest exponential histogram, and batches are summed in integers.
 *
 * Ownership: the caller's table, 10 KB, of which real programs touch a few lines. Threads: all may read one table.
 * Cost: logs_of about 3 ns: one guess by the ten bits below the leading one, two comparisons.
 */
#ifndef PERFLAW_LOGS_H
#define PERFLAW_LOGS_H

#include <stdint.h>

enum { LOG_BITS = 10, LOG_UNIT = 1 << LOG_BITS };

typedef struct Logs {
    uint64_t bounds[LOG_UNIT + 1]; /* 2^(63 + j/1024), rounded up; the last is larger than any number */
    uint16_t guess[LOG_UNIT];      /* the largest j whose bound lies at or below the beginning of the cell */
} Logs;

void logs_begin(Logs *logs);

/* x > 0. A cell is 1/1024 of the mantissa, in which the logarithm passes at most two bounds. */
static inline uint32_t logs_of(const Logs *logs, uint64_t x) {
    unsigned bits = 63u - (unsigned)__builtin_clzll(x);
    uint64_t mantissa = x << (63 - bits);
    uint32_t at = logs->guess[mantissa >> (63 - LOG_BITS) & (LOG_UNIT - 1)];
    at += mantissa >= logs->bounds[at + 1];
    at += mantissa >= logs->bounds[at + 1];
    return bits * LOG_UNIT + at;
}

#endif
