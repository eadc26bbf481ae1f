/* Dynamic types of objects, known by the address of their virtual table. The recorder finds their names.
 *
 * Ownership: the process. Threads: any. Cost: a look-up takes 2 ns; the first sight of a type takes a lock and writes a line
 * of the definitions file. */
#ifndef PERFLAW_COMPILED_FEATURES_DYNAMIC_TYPES_H
#define PERFLAW_COMPILED_FEATURES_DYNAMIC_TYPES_H

#include <stdint.h>

/* The number of the type with this virtual table. 0 if the address is none of a loaded file, or there are too many. */
int32_t dynamic_type_number(uint64_t table);
/* In a forked child: forget all numbers. */
void dynamic_types_forget(void);

#endif
