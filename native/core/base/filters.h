/* Filters of system calls (seccomp): which would end a process for what a recording does there, and when a program is about to
 * install one.
 *
 * What is recorded in a program makes system calls that the program itself may never make. A filter that refuses one by an
 * error does no harm; one that answers by a signal would end the program. */
#ifndef PERFLAW_CORE_BASE_FILTERS_H
#define PERFLAW_CORE_BASE_FILTERS_H

#include <stddef.h>
#include <stdint.h>

/* An instruction of classic BPF: `struct sock_filter`. */
typedef struct FilterInstruction {
    uint16_t code;
    uint8_t if_true, if_false;
    uint32_t constant;
} FilterInstruction;

/* What a filter answers to a system call with these arguments: one of SECCOMP_RET_*, without its data. */
uint32_t filter_action(const FilterInstruction *program, size_t count, int number, const uint64_t arguments[6]);

/* The name of a system call of a recording at which a filter would end the process; NULL if there is none. */
const char *filter_obstacle(const FilterInstruction *program, size_t count);

/* Have `leave` called, in the thread that is about to install a filter which would end the process for what a recording does, or
 * lets it read no clocks, or with `opens_files` open no files any more. It is told why, in words that stay. The C library's `prctl` and
 * `syscall` lead here from now on. Called before the program has threads of its own, once: later calls do nothing. */
void filters_watch(void (*leave)(const char *why), int opens_files);

#endif
