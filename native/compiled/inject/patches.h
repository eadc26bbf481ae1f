/* The patches of a module, as the recorder worked them out from its file (record/compiled/inject/tables.py has the same
 * layout):
 *
 *     | PatchTable | Patch ... | Fixup ... | bytes |      of each patch, the original bytes and then the displaced code
 *
 * Nothing is decoded here: bytes are compared, copied, and their addresses filled in. A function whose bytes are not those of
 * the file stays as it is.
 *
 * Ownership: stubs belong to the process and are never given back, because threads may be in them. A later recording of the same
 * function uses its stub again. Threads: one, while no other
 * executes the module. Cost: about 100 ns a patch. */
#ifndef PERFLAW_COMPILED_INJECT_PATCHES_H
#define PERFLAW_COMPILED_INJECT_PATCHES_H

#include <stddef.h>
#include <stdint.h>

#include "compiled/questions.h"

enum { MAX_JUMP = 24 };     /* bytes that are overwritten: whole instructions of at most 15 bytes, from the fifth on */
enum { MAX_MODULES = 1024 }; /* loaded files that are injected into, also those that were closed */

/* A loaded file. */
typedef struct Module {
    char *base;
    char *first, *end;           /* of its memory */
    char *code_first, *code_end; /* of its executable memory */
    int code_protection;         /* of mprotect */
    uint64_t number;             /* of the files that lay at this place one after another */
} Module;

/* The bytes that a function begins with, and those that make it jump to its stub. */
typedef struct Jump {
    uint64_t address;
    uint32_t size, loop; /* loop: bytes from there on that must not be executed while the jump is written; 0: no more than `size` */
    char original[MAX_JUMP], jump[MAX_JUMP];
} Jump;
/* Writes the jumps of a module. NULL, or why that cannot be. */
typedef const char *(*WriteJumps)(const Module *module, const Jump *jumps, size_t count);

/* Make the stubs of a table, and have the jumps to them written. NULL, or why that cannot be; then the module is as it was. */
const char *patches_apply(const Module *module, Answer table, WriteJumps write);
/* Writes the jumps itself: the program has one thread. */
const char *write_jumps(const Module *module, const Jump *jumps, size_t count);

/* Whether a function jumps to its stub now. */
int patches_lead_from(const char *function);
/* Have the functions that jump to their stubs do nothing but go on, until they are woken: while some have their jumps and others
 * do not yet, and when the recording is over. Cost: a store for every mapping of stubs. */
void patches_rest(void);
void patches_wake(void);
/* Give the process its own copy of the pages of code that jumps will be written to. The kernel makes it at the first write to each,
 * which would take most of the time for which the threads are stopped; nothing changes in them. Nothing is done where the system
 * does not allow it, or where the file was closed. Cost: 2 us a page; the loader's lock is held for a few pages at a time. */
void patches_own_pages(const Module *module, const Jump *jumps, size_t count);

/* Make an injected function that does nothing, for calibration. 0 if that cannot be. */
int patches_start(void);

#endif
