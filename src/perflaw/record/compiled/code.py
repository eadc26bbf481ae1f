"""The machine code of a file: where functions begin that can be called, and where code jumps to (x86-64)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.compiled.dwarf import unit_ranges
from perflaw.record.compiled.elf import Elf, FunctionSymbol, open_elf
from perflaw.record.compiled.unwinding import called_functions

_WRITABLE, _LOADED, _EXECUTABLE = 0x1, 0x2, 0x4
"""SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR."""
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
_COLD: Final = ".cold"
"""In the symbol of a function's unlikely code."""
_CALL: Final = b"\xe8"
_NEAR_BRANCHES: Final = (_CALL, b"\xe9", *(bytes([0x0F, 0x80 | condition]) for condition in range(16)))
"""Opcodes of calls and jumps by 32 bits."""
_INDIRECT_JUMP: Final = re.compile(rb"\xff[\xe0-\xe7\x24]")
"""A jump to where a register or a table says."""
_TABLE_ADDRESS: Final = re.compile(rb"(?=[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4}))", re.DOTALL)
"""An address relative to the end of the instruction (lea) of 7 bytes."""
_TABLE_JUMP: Final = re.compile(rb"(?=\xff\x24[\xc5\xcd\xd5\xdd\xe5\xed\xf5\xfd](.{4}))", re.DOTALL)
"""A jump by a table at a fixed address."""
_MOST_TABLE: Final = 1 << 14
"""Bytes of a table of jumps that are looked at."""


@dataclass(frozen=True)
class Code:
    """The executable sections of a file, and where code jumps to."""

    sections: tuple[tuple[int, bytes], ...]
    """(address, bytes) in order of the sections in which functions are."""
    linking: tuple[tuple[int, bytes], ...]
    """Likewise of those that start and end the file and call other files."""
    constants: tuple[tuple[int, bytes], ...]
    """(address, bytes) in order of the sections of constants, in which tables of jumps are."""

    def at(self, address: int, limit: int) -> bytes:
        """At most ``limit`` bytes of code from an address on; empty if there is none."""
        return _bytes_at(self.sections, address, limit)

    def named(self, first: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The jumps and calls that name addresses in [first, end): the address behind each, and the one that it names."""
        behind, targets = self._branches
        low, high = np.searchsorted(targets, (first, end))
        return behind[low:high], targets[low:high]

    @cached_property
    def _branches(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The address behind each jump and call of 32 bits, and the one that it names, in order of the latter.

        Some are none, because all bytes are looked at. That takes long, so it is done where somebody asks.
        """
        named = [np.empty((2, 0), np.int64)]
        for start, data in (*self.sections, *self.linking):
            named += [np.stack(relative_targets(data, start, opcode)) for opcode in _NEAR_BRANCHES]
        behind, targets = np.concatenate(named, axis=1)
        order = np.argsort(targets, kind="stable")
        return behind[order], targets[order]

    def is_call(self, behind: int) -> bool:
        """Whether what ends at an address is a call and no jump."""
        return self.at(behind - 5, 1) == _CALL

    def table_targets(self, function: range) -> list[int]:
        """Where the tables of jumps (``switch``) of a function may lead to within it.

        Their numbers are relative to the table, or addresses in programs that are never moved.
        """
        code, found = self.at(function.start, len(function)), list[int]()
        if not _INDIRECT_JUMP.search(code):
            return found
        tables = [
            (function.start + each.start() + 7 + int.from_bytes(each[1], "little", signed=True), "<i4")
            for each in _TABLE_ADDRESS.finditer(code)
        ]
        tables += [(int.from_bytes(each[1], "little"), "<i8") for each in _TABLE_JUMP.finditer(code)]
        for table, kind in tables:
            content = _bytes_at(self.constants, table, _MOST_TABLE)
            base = table if kind == "<i4" else 0
            numbers = base + np.frombuffer(content[: len(content) // 8 * 8], kind).astype(np.int64)
            outside = np.flatnonzero((numbers < function.start) | (numbers >= function.stop))
            found += numbers[: outside[0] if len(outside) else None].tolist()
        return found


def _bytes_at(sections: tuple[tuple[int, bytes], ...], address: int, limit: int) -> bytes:
    found = bisect_right(sections, address, key=lambda section: section[0]) - 1
    if found < 0:
        return b""
    first, content = sections[found]
    return content[address - first : address - first + limit]


def code_of(elf: Elf) -> Code:
    """The code of a file."""
    sections, linking, constants = (list[tuple[int, bytes]]() for _ in range(3))
    for section in elf.file.iter_sections():
        flags = section["sh_flags"]
        if section["sh_type"] == "SHT_NOBITS" or not flags & _LOADED or (flags & _WRITABLE and not flags & _EXECUTABLE):
            continue
        is_linking = section.name in (".init", ".fini") or section.name.startswith(".plt")
        kind = constants if not flags & _EXECUTABLE else linking if is_linking else sections
        kind.append((int(section["sh_addr"]), section.data()))
    return Code(tuple(sorted(sections)), tuple(sorted(linking)), tuple(sorted(constants)))


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
    symbols, is_named = _symbols(elf)
    for symbol in symbols:
        sizes[symbol.address] = max(sizes.get(symbol.address, 0), symbol.size)
        name = symbol.symbol
        if name in _NOT_CALLED | _RETURNS_ELSEWHERE or _COLD in name:
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


def cold_parts(elf: Elf) -> dict[int, list[range]]:
    """Address of each function whose unlikely code the compiler has put elsewhere → where that is."""
    symbols, _ = _symbols(elf)
    parts: dict[str, list[range]] = {}
    for symbol in symbols:
        name, cold, _ = symbol.symbol.partition(_COLD)
        if cold:
            parts.setdefault(name, []).append(range(symbol.address, symbol.address + symbol.size))
    return {symbol.address: parts[symbol.symbol] for symbol in symbols if symbol.symbol in parts}


def _symbols(elf: Elf) -> tuple[list[FunctionSymbol], bool]:
    """The functions in the tables of a file and of its debug file, and whether all are there."""
    with open_elf(elf.debug_file) as debug:
        return [*elf.functions(), *(debug.functions() if debug else ())], elf.has_symbols or debug is not None


def _is_within(spans: list[tuple[int, int]], address: int) -> bool:
    at = bisect_right(spans, address, key=lambda span: span[0]) - 1
    return at >= 0 and address < spans[at][1]
