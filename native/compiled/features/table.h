/* What to read at the calls of the entry hook, as the recorder compiled it from the types of the program
 * (record/compiled/features/tables.py has the same layout). A table is the recorder's answer for the code of one
 * compilation unit:
 *
 *     | TableHead | HookCall ... | Read ... | Feature ... | Term ... | names    hook calls sorted by `returns`
 *
 * All that is read lies in one block of bytes: the registers at the hook's call, then what the reads bring. A position is
 * an index of bytes in that block.
 *
 * Ownership: a CallProgram belongs to the process and is a checked copy. Threads: any; a lock admits one. Cost: a
 * program is found once in a thread and compiled once in a process, some milliseconds, for which the thread waits. */
#ifndef PERFLAW_COMPILED_FEATURES_TABLE_H
#define PERFLAW_COMPILED_FEATURES_TABLE_H

#include "compiled/recording.h"

enum { BLOCK_BYTES = 4096, MAX_READS = 64, ALWAYS = 255, NO_POSITION = UINT16_MAX };

/* The registers where the entry hook is called, in DWARF's order; those that the call itself changes are not filled. */
typedef struct Registers {
    uint64_t general[16];   /* rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 */
    uint64_t vector[8];     /* the low halves of xmm0 ... xmm7 */
    uint64_t base;          /* where the code's file is loaded */
} Registers;

/* Bytes to be copied into the block. */
typedef struct Read {
    int64_t offset;   /* from the address in the block */
    uint16_t pointer; /* position of that address */
    uint16_t to, size;
    uint8_t level; /* reads of one level need only what lower levels have read */
    uint8_t needs; /* the read that brings the pointer; ALWAYS: it is in a register */
} Read;

typedef enum FeatureKind { UNSIGNED, SIGNED, FLOATING, TEXT_LENGTH, UNSIGNED_SUM, SIGNED_SUM, FLOATING_SUM, COMBINATION, DYNAMIC_TYPE, SMALL, STRING_LENGTH, FEATURE_KINDS } FeatureKind;

typedef struct Feature {
    uint32_t name;       /* offset among the names */
    uint32_t first_term; /* of a COMBINATION */
    int64_t constant;    /* of a COMBINATION; of a TEXT_LENGTH, offset of the text from the pointer; of a SMALL, its bound */
    uint16_t at, count;  /* count: elements of a sum; of a text, its most characters, 0 if that is not known */
    uint8_t kind, size;  /* size: of the number or element, in bytes */
    uint8_t needs;       /* the read that brings it, or ALWAYS */
    uint8_t terms;
    uint8_t shift, bits; /* of a bit-field; bits is 0 for other numbers */
    uint8_t unused[6];
} Feature;

/* A part of a sum: factor * ((high - low) / divisor). */
typedef struct Term {
    uint16_t high, low; /* low: NO_POSITION if nothing is subtracted */
    uint8_t high_needs, low_needs, size, unused;
    int32_t divisor, factor;
} Term;

typedef struct CallProgram {
    const Read *reads;
    const Feature *features;
    const Term *terms;
    uint64_t base;
    uint16_t read_count, feature_count;
    int32_t first_number; /* the number of the first feature; the others follow */
} CallProgram;

/* What to read where the entry hook of a function is called that returns to this address. NULL if nothing is. */
const CallProgram *table_find(const void *returns, const void *function, int32_t function_number);
/* So many numbers of features that follow each other and are nobody's yet. Gives the first. */
int32_t table_reserve(int32_t count);
/* Forget what the recorder has answered, when nothing is read any more. */
void tables_drop(void);
/* Forget the numbers of features; in a forked child. */
void table_forget(void);

#endif
