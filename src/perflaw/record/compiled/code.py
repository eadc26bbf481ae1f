"""The machine code of a file: where functions begin that can be called, and where code jumps to (x86-64)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.compiled.dwarf import unit_ranges
from perflaw.record.compiled.elf import Elf, open_elf
from perflaw.record.compiled.unwinding import called_functions

_EXECUTABLE: Final = 0x4
"""SHF_EXECINSTR."""
_NOT_CALLED: Final = frozenset(
    {
        "_start",
        "_init",
        "_fini",
        "deregister_tm_clones",
        "register_tm_clones",
        "__do_global_dtors_aux",
        "frame_dummy",
        "__sanitizer_cov_trace_pc",
    }
)
"""What the linker adds to every program, and what programs with branches call in every block."""
_SANITIZERS: Final = frozenset({"__asan_init", "__tsan_init", "__msan_init", "__lsan_init"})
"""Functions of a sanitizer's runtime. A program that is linked with it must not be left while the runtime is at work."""
_RETURNS_ELSEWHERE: Final = frozenset(
    {"setjmp", "_setjmp", "__sigsetjmp", "sigsetjmp", "vfork", "__vfork", "getcontext", "setcontext", "swapcontext"}
)
"""Functions that keep their return address for later."""
_NEAR_BRANCHES: Final = (b"\xe8", b"\xe9", *(bytes([0x0F, 0x80 | condition]) for condition in range(16)))
"""Opcodes of calls and jumps by 32 bits."""


@dataclass(frozen=True, slots=True)
class Code:
    """The executable sections of a file, and where code jumps to."""

    sections: tuple[tuple[int, bytes], ...]
    """(address, bytes) in order."""
    targets: NDArray[np.int64]
    """Addresses that a jump or call of 32 bits may name, in order; some are none, because all bytes are looked at."""

    def at(self, address: int, limit: int) -> bytes:
        """At most ``limit`` bytes of code from an address on; empty if there is none."""
        found = bisect_right(self.sections, address, key=lambda section: section[0]) - 1
        if found < 0:
            return b""
        first, code = self.sections[found]
        return code[address - first : address - first + limit]

    def named(self, first: int, end: int) -> list[int]:
        """The targets in [first, end)."""
        low, high = np.searchsorted(self.targets, (first, end))
        return [int(target) for target in self.targets[low:high]]


def code_of(elf: Elf) -> Code:
    """The code of a file."""
    sections = []
    targets = [np.empty(0, np.int64)]
    for section in elf.file.iter_sections():
        if not section["sh_flags"] & _EXECUTABLE or section["sh_type"] == "SHT_NOBITS":
            continue
        start, data = int(section["sh_addr"]), section.data()
        targets += [relative_targets(data, start, opcode)[1] for opcode in _NEAR_BRANCHES]
        if section.name not in (".init", ".fini") and not section.name.startswith(".plt"):
            sections.append((start, data))
    return Code(tuple(sorted(sections)), np.unique(np.concatenate(targets)))


def relative_targets(code: bytes, start: int, instruction: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of all bytes that may be this instruction, which names an address relative to its end: its end, and that address."""
    array = np.frombuffer(code, np.uint8)
    length = len(instruction) + 4
    if len(array) < length:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    found = array[: len(array) - length + 1] == instruction[0]
    if len(instruction) == 2:
        found &= array[1 : len(array) - length + 2] == instruction[1]
    at = np.flatnonzero(found)
    operand = sum(array[at + len(instruction) + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
    behind = at + length + start
    return behind, behind + np.asarray(operand, np.uint32).view(np.int32)


def entry_points(elf: Elf) -> dict[int, int]:
    """Address of each function that can be called → bytes of its code, 0 if they are not known.

    They come from the symbols; of a file that was stripped also from the tables for unwinding.
    """
    sizes: dict[int, int] = {}
    left_out: set[int] = {int(elf.file["e_entry"])}
    with open_elf(elf.debug_file) as debug:
        symbols = [*elf.functions(), *(debug.functions() if debug else ())]
        is_named = elf.has_symbols or debug is not None
    for symbol in symbols:
        sizes[symbol.address] = max(sizes.get(symbol.address, 0), symbol.size)
        name = symbol.symbol
        if name in _NOT_CALLED | _RETURNS_ELSEWHERE or ".cold" in name:
            left_out.add(symbol.address)
    if not is_named:
        for address, size in called_functions(elf):
            sizes[address] = max(sizes.get(address, 0), size)
    if any(symbol.symbol in _SANITIZERS for symbol in symbols) and (dwarf := elf.dwarf()):
        spans = sorted((low, high) for low, high, _ in unit_ranges(dwarf))
        left_out |= {
            address for address in sizes if not _is_within(spans, address)
        }  # the runtime tells nothing of itself
    return {address: size for address, size in sizes.items() if address not in left_out}


def _is_within(spans: list[tuple[int, int]], address: int) -> bool:
    at = bisect_right(spans, address, key=lambda span: span[0]) - 1
    return at >= 0 and address < spans[at][1]
