/* The code between an injected function and the library. The first instructions of the function are replaced by a jump to a
 * stub of its own, which lies near it:
 *
 *     | address of the function | of the displaced instructions | lea -128(%rsp), %rsp; push that address; jmp *inject_entry |
 *     | lea 128(%rsp), %rsp | displaced instructions; jmp behind them |
 *
 * inject_entry goes on at the displaced instructions, with every register and flag as they were. 128 bytes below the stack
 * pointer are left alone, because the function may be entered by a jump from code that uses them.
 *
 * When the function is recorded, inject_entry calls the displaced instructions as a function in the place of its caller, and
 * returns to that itself when they have returned. So the processor foresees both returns, because each belongs to a call.
 *
 * Ownership: none. Threads: any. Cost: some 6 ns a call. */
#ifndef PERFLAW_COMPILED_INJECT_STUBS_H
#define PERFLAW_COMPILED_INJECT_STUBS_H

#include "compiled/features/table.h"

/* The head of a stub is STUB_HEAD bytes before the displaced instructions. A function that is not recorded goes on
 * STUB_RISE bytes before them. */
enum { STUB_HEAD = 41, STUB_RISE = 8, RED_ZONE = 128 };

/* Where stubs jump to, and what injected functions return to; where stubs jump to when the recording is over, at 2 ns a call.
 * They are code, not functions of C. */
extern const char inject_entry[], inject_leave[], inject_rest[];
/* Calls loader_has_changed (modules.c) and returns, with every general register as it was: the loader's compiler knows that an empty
 * function changes none. */
extern const char inject_loader[];

/* What these call. `behind`: the displaced instructions; `slot`: where the return address stands. */

/* How a function goes on: not recorded; recorded, and the real return address is in the mirror; its features are to be read before. */
enum { INJECT_PLAIN, INJECT_RECORDED, INJECT_READ };
/* A function begins, in the usual case: 0 if it is not usual, else it is recorded. */
int inject_quick(const char *behind, const uintptr_t *slot);
/* A function begins: the sum of INJECT_RECORDED and INJECT_READ, or INJECT_PLAIN. */
int inject_enter(const char *behind, const uintptr_t *slot);
/* Read its features. */
void inject_read(const char *behind, const Registers *registers);
/* A function has ended; gives the real return address. */
uintptr_t inject_exit(uintptr_t slot);

#endif
