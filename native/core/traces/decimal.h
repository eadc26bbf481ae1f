/* Numbers as a text has them, in decimal: time stamps stay exact, whatever their fraction.
 *
 * Ownership: none. Threads: any. Cost: 10 ns for a time with at most three decimals, else some 100 ns.
 */
#ifndef PERFLAW_DECIMAL_H
#define PERFLAW_DECIMAL_H

#include "json.h"

typedef struct Stamp {
    int64_t ns;       /* what the number of µs is in ns, if is_exact */
    __int128 units;   /* the same in 10^-20 µs; what is smaller than that is rounded away from the half */
    int is_exact, has_fraction; /* has_fraction: of a µs */
} Stamp;

/* A number of µs. 0 if the text is none, or the time does not fit into 62 bits of ns. */
int decimal_stamp(Slice text, Stamp *stamp);
/* The ns of a time, or of the sum of two; halves are rounded to even. 0 if they do not fit. */
int decimal_ns(const Stamp *stamp, int64_t *ns);
int decimal_sum_ns(const Stamp *one, const Stamp *other, int64_t *ns);
/* The number of a text as Python's decimal reads it, without underscores. 0 if it is none. */
int decimal_double(Slice text, double *value);

#endif
