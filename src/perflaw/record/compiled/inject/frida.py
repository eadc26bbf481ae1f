"""The beginnings of functions told by Frida instead of by our own jumps, for ``--native=frida``.

A program that the recorder has started waits, before its main function, for the answer to a question: the recorder meanwhile
attaches Frida to it. Frida's Interceptor then calls native code at the beginning of each chosen function: a few lines of C,
which Frida compiles in the program against its own headers, call the same function of our library as injected code does. Its
ends are our own exit's (native/compiled/inject/frida.h says why). Everything stays in the program until it ends, so that
its code never changes while it runs.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.compiled.code import code_of, cold_parts, entry_points
from perflaw.record.compiled.elf import libraries, open_elf
from perflaw.record.compiled.inject.choice import Injection
from perflaw.record.compiled.inject.relocation import WINDOW, FixupKind, Unpatchable
from perflaw.record.compiled.inject.tables import module_patches, patch_at

NAME: Final = "frida"
"""Name of the tracer, of the extra that it needs, and of the question that a program asks."""
BY: Final = "Frida"
"""What records the functions, in words."""
INSTALL: Final = "pip install 'perflaw[frida]'"
_FAR: Final = "there is no room near it for Frida's code"
_IMMOVABLE: Final = "Frida cannot move its first instructions"
_CALLS_FIRST: Final = "a call in its first bytes, which Frida moves to where no exception finds a handler"
_LOOPS: Final = "a loop back to its first instructions, each turn of which Frida would tell as a call"
_JUMPS_FIRST: Final = "it begins with a jump, which Frida follows to another function"

_LONG_JUMPS: Final = frozenset({"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"})
_HANDLERS: Final = frozenset({"signal", "sigaction", "sigset", "sigvec", "bsd_signal", "__sysv_signal", "sysv_signal"})
_LANDING: Final = b"\xf3\x0f\x1e\xfa"
"""``endbr64``, the first instruction of functions that may be called indirectly."""
_JUMPS: Final = (b"\xe9", b"\xeb", b"\xff\x25")

_ADAPTER: Final = """
#include <gum/guminterceptor.h>
#include <gum/gumprocess.h>

/* The registers in DWARF's order (native/compiled/features/table.h). */
typedef struct Registers { guint64 general[16], vector[8], base; } Registers;

extern int perflaw_frida_enter (gpointer function, gpointer slot);
extern void perflaw_frida_read (gpointer function, Registers * registers);

void
enter (GumInvocationContext * ic)
{
  GumCpuContext * cpu = ic->cpu_context;
  Registers r;
  int at;

  if (!perflaw_frida_enter (ic->function, (gpointer) cpu->rsp))
    return;
  r.general[0] = cpu->rax; r.general[1] = cpu->rdx; r.general[2] = cpu->rcx; r.general[3] = cpu->rbx;
  r.general[4] = cpu->rsi; r.general[5] = cpu->rdi; r.general[6] = cpu->rbp; r.general[7] = cpu->rsp;
  r.general[8] = cpu->r8; r.general[9] = cpu->r9; r.general[10] = cpu->r10; r.general[11] = cpu->r11;
  r.general[12] = cpu->r12; r.general[13] = cpu->r13; r.general[14] = cpu->r14; r.general[15] = cpu->r15;
  for (at = 0; at != 8; at++)
    r.vector[at] = ~0ULL;
  r.base = 0;
  perflaw_frida_read (ic->function, &r);
}
"""

_SCRIPT: Final = """
rpc.exports = {
  attach(source, enter, read, functions) {
    const adapter = new CModule(source, { perflaw_frida_enter: ptr(enter), perflaw_frida_read: ptr(read) });
    const refused = [], attached = [];
    for (const function_ of functions) {
      try {
        attached.push([function_, Interceptor.attach(ptr(function_), adapter.enter)]);
      } catch (error) {
        refused.push([function_, '']);
      }
    }
    Interceptor.flush();
    for (const [function_, listener] of attached) {
      const first = ptr(function_);
      const jump = first.readU32() === 0xfa1e0ff3 ? first.add(4) : first; /* endbr64 */
      if (jump.readU8() !== 0xe9) {
        listener.detach();
        refused.push([function_, 'far']);
      }
    }
    Interceptor.flush();
    globalThis.adapter = adapter;
    return refused;
  }
};
"""


def leaves_handlers_by_jumps(program: Path) -> bool:
    """Whether a program, or a library of the person's that it is linked with, may leave a signal handler by a jump."""
    names: set[str] = set()
    for each in (program, *libraries(program)):
        with open_elf(each) as elf:
            names |= elf.linked_names if elf else set()
    return bool(names & _LONG_JUMPS and names & _HANDLERS)


def is_installed() -> bool:
    """Whether Frida is; it is not imported, which takes 0.1 s."""
    return find_spec(NAME) is not None


def require_frida(program: Path) -> None:
    """TargetError if Frida is not installed, or may crash the program."""
    if not is_installed():
        raise TargetError("--native=frida: Frida is not installed", "it is an extra of perflaw", INSTALL)
    if leaves_handlers_by_jumps(program):
        why = "it has signal handlers and calls longjmp; a handler that jumps out of Frida's code can crash the program"
        raise TargetError(f"{program}: not recorded by Frida", why, "leave --native=frida out")


def attach_frida(question: str, injection: Injection) -> bytes:
    """Have Frida tell of the beginnings of the functions that a program's question lists files for.

    Gives the answer: empty, or why it could not be, as text that ends with a zero byte. The program waits meanwhile.
    """
    head, *lines = question.split("\n")
    _, pid, _, enter, read, empty = head.split()
    functions = {empty: (Path(), 0)}
    for base, _, name in (line.partition(" ") for line in lines):
        module = Path(name).resolve()
        chosen = frozenset(injection.chosen(module))
        unsuitable = _unsuitable(module, chosen)
        injection.refuse(module, unsuitable)
        functions |= {f"{int(base, 16) + one:#x}": (module, one) for one in chosen - unsuitable.keys()}
    try:
        refused = _attached(int(pid), enter, read, list(functions))
    except Exception as error:  # Frida's own are many, and none may end the recorder: the program goes on as it is
        return f"Frida cannot be attached: {error}".encode() + b"\0"
    by_module: dict[Path, dict[int, str]] = {}
    for address, is_far in refused:
        module, offset = functions[address]
        by_module.setdefault(module, {})[offset] = _FAR if is_far else _IMMOVABLE
    if Path() in by_module:
        return b"Frida cannot attach to the function that tells what a call costs\0"
    for module, offsets in by_module.items():
        injection.refuse(module, offsets)
    return b""


@lru_cache(maxsize=16)
def _unsuitable(module: Path, chosen: frozenset[int]) -> dict[int, str]:
    """Offset → why, of those chosen functions of a file that our injected code could record and Frida could not."""
    if not chosen:
        return {}
    patches, refused = module_patches(module), dict[int, str]()
    with open_elf(module) as elf:
        assert elf is not None  # it has functions
        code, sizes, cold = code_of(elf), entry_points(elf), cold_parts(elf)
        for row in patches.patches[np.isin(patches.patches["offset"], np.fromiter(chosen, np.uint64))]:
            address = int(row["offset"]) + elf.base
            original = code.at(address, int(row["original"]))
            kinds, loop = patches.fixups["kind"][row["first_fixup"] :][: row["fixups"]], int(row["loop"])
            if original.startswith(_LANDING):  # which Frida leaves there, and jumps behind it
                function = range(address + len(_LANDING), address + (sizes[address] or WINDOW))
                try:
                    patch = patch_at(code, function, cold.get(address, ()))
                except Unpatchable as reason:
                    refused[int(row["offset"])] = str(reason)
                    continue
                assert patch is not None  # it has the code that the table was made of
                original, kinds, loop = patch.original, np.array([one.kind for one in patch.fixups]), patch.loop
            if loop:
                refused[int(row["offset"])] = _LOOPS
            elif FixupKind.LOW_HALF in kinds:
                refused[int(row["offset"])] = _CALLS_FIRST
            elif original.startswith(_JUMPS):
                refused[int(row["offset"])] = _JUMPS_FIRST
    return refused


def _attached(pid: int, enter: str, read: str, functions: list[str]) -> list[tuple[str, bool]]:
    """Attach to functions of a process for as long as it runs; those that were refused, and whether for want of room."""
    import frida

    session: Any = frida.attach(pid)
    script = session.create_script(_SCRIPT)
    script.load()
    refused = script.exports_sync.attach(_ADAPTER, enter, read, functions)
    script.eternalize()  # else the functions are changed back when the session ends, while the program runs
    session.detach()
    return [(address, bool(is_far)) for address, is_far in refused]
