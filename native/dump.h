/* The tables of an arena file as text, one row a line, from the file alone: its writer may be running, done or killed.
 * Rows of a table stand in the order of their keys. Threads: any. Ownership: nothing is kept.
 *
 *     head version calls lost full first last busy      link ancestor descendant n n_once k kk ky y yy yx
 *     node number parent code site depth n open x xx min max        histogram node bucket count
 *     wait node n w ww least most                        code number total self
 *     pair node i j yy                                   stratum code stratum count
 *     sample code sequence node started x uniform_key|-1 stratum_key kids features
 *     callee sequence node k y                           feature sequence number bits
 */
#ifndef PERFLAW_DUMP_H
#define PERFLAW_DUMP_H

#include <stdio.h>

#include "arena.h"

void dump_tree(const Arena *arena, FILE *out);
/* One function's part of it. */
void dump_samples(const Arena *arena, uint32_t code, Offset reservoir, FILE *out);
/* An exact sum in decimal; text has room for 41 characters. */
char *dump_sum(Sum sum, char *text);

#endif
