/* The code between an injected function and the library. The first instructions of the function are replaced by a jump to a
 * stub of its own, which lies near it:
 *
 *     | address of the function | lea -128(%rsp), %rsp; call *inject_entry | displaced instructions; jmp behind them |
 *
 * inject_entry returns to the displaced instructions, with every register and flag as they were. 128 bytes below the stack
 * pointer are left alone, because the function may be entered by a jump from code that uses them. When the function is
 * recorded, the address that it returns to is replaced by that of inject_leave.
 *
 * Ownership: none. Threads: any. Cost: some 15 ns a call, half of it because the processor foresees no return to
 * inject_leave. */
#ifndef PERFLAW_COMPILED_INJECT_STUBS_H
#define PERFLAW_COMPILED_INJECT_STUBS_H

#include "compiled/features/table.h"

/* What the head of a stub holds, STUB_HEAD bytes before the displaced instructions. */
enum { STUB_HEAD = 19, RED_ZONE = 128 };

/* What stubs call, and what injected functions return to. They are code, not functions of C. */
extern const char inject_entry[], inject_leave[];

/* What these call. `behind`: the displaced instructions; `slot`: where the return address stands. The first gives whether
 * features are to be read, which the second does; the third gives the real return address. */
int inject_enter(const char *behind, uintptr_t *slot);
void inject_read(const char *behind, const Registers *registers);
uintptr_t inject_exit(uintptr_t slot);

#endif
