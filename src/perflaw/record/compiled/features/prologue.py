"""Where the arguments of a function that clang did not optimise are when it calls the entry hook (x86-64).

DWARF names their places in the frame, but clang stores them there behind the hook's call. Before it, they are where the first
instructions put them, which are few and simple. What is not understood gives no places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from perflaw.record.compiled.features.locations import Address, InMemory, InRegister
from perflaw.record.compiled.features.programs import Kind
from perflaw.record.compiled.features.types import number_of, size_of, stripped, type_of

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE

_DWARF: Final = (0, 2, 1, 3, 7, 6, 4, 5, *range(8, 16))
"""Number of a register in instructions → DWARF's."""
_FIRST_VECTOR: Final = 17
_FRAME: Final = 6
"""DWARF's number of rbp."""
_INTEGERS: Final = (5, 4, 1, 2, 8, 9)
"""DWARF's numbers of rdi, rsi, rdx, rcx, r8 and r9, in which the first arguments come."""
_VECTORS: Final = tuple(range(_FIRST_VECTOR, _FIRST_VECTOR + 8))
_POINTERS: Final = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
_CLASSES: Final = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
_BY_REFERENCE: Final = 4
"""DW_CC_pass_by_reference."""


class _NotUnderstood(Exception):
    """An instruction that is none of those known here."""


@dataclass(frozen=True, slots=True)
class _Operands:
    """The operands of an instruction: a register, and another register or memory."""

    register: int
    other: int | None
    """None: memory."""
    frame_offset: int | None
    """Offset from rbp of the memory; None if it is elsewhere."""
    end: int
    """Index behind the operands."""


def _operands(code: bytes, at: int, rex: int) -> _Operands:
    mode, register, other = code[at] >> 6, code[at] >> 3 & 7 | (rex & 4) << 1, code[at] & 7
    at += 1
    if mode == 3:
        return _Operands(register, other | (rex & 1) << 3, None, at)
    if other == 4:  # the address has an index
        other = 5 if mode == 0 and code[at] & 7 == 5 else -1
        at += 1
    size = (4 if other == 5 else 0, 1, 4)[mode]
    offset = int.from_bytes(code[at : at + size], "little", signed=True)
    is_frame = mode != 0 and other == 5 and not rex & 1
    return _Operands(register, None, offset if is_frame else None, at + size)


def argument_places(code: bytes) -> dict[int, tuple[InRegister | InMemory, int]]:
    """DWARF's number of each register that arguments come in → where its value is behind ``code``, and bytes of it there.

    ``code`` is that of the function from its start to the hook's call.
    """
    registers = {register: register for register in (*_INTEGERS, *_VECTORS)}  # register → whose first value it holds
    stored: dict[int, tuple[int, int]] = {}  # offset in the frame → that and bytes
    at = 0
    try:
        while at < len(code):
            at = _step(code, at, registers, stored)
    except (_NotUnderstood, IndexError):  # what is not understood is not told
        return {}
    places: dict[int, tuple[InRegister | InMemory, int]] = {}
    for offset, (argument, size) in stored.items():
        if size > places.get(argument, (None, 0))[1]:
            places[argument] = InMemory(Address(_FRAME, (offset,))), size
    return places


def _step(code: bytes, at: int, registers: dict[int, int], stored: dict[int, tuple[int, int]]) -> int:
    """Execute one instruction; gives the index of the next."""
    prefix = rex = 0
    while code[at] in (0x66, 0xF2, 0xF3):
        prefix, at = code[at], at + 1
    if code[at : at + 3] == b"\x0f\x1e\xfa":  # endbr64
        return at + 3
    if 0x40 <= code[at] <= 0x4F:
        rex, at = code[at], at + 1
    opcode, at = code[at], at + 1
    size = 8 if rex & 8 else 2 if prefix == 0x66 else 4
    if 0x50 <= opcode <= 0x57:  # push
        return at
    if opcode in (0x24, 0x25):  # and of a constant with rax, which makes a truth 0 or 1
        return at + (1 if opcode == 0x24 else 4)
    if opcode == 0x0F:
        opcode, at = code[at], at + 1
        where = _operands(code, at, rex)
        if opcode in (0x11, 0x29, 0x7F) and where.other is None:  # store of a vector register
            _store(stored, where, registers.get(_FIRST_VECTOR + where.register), 4 if prefix == 0xF3 else 8)
        elif opcode in (0x10, 0x28) and where.other is not None:
            _move(registers, _FIRST_VECTOR + where.register, registers.get(_FIRST_VECTOR + where.other))
        elif opcode in (0xB6, 0xB7, 0xBE, 0xBF) and where.other is not None:
            _move(registers, _DWARF[where.register], registers.get(_DWARF[where.other]))
        else:
            raise _NotUnderstood
        return where.end
    where = _operands(code, at, rex)
    if opcode in (0x88, 0x89, 0x8A, 0x8B):
        if not opcode & 1:
            size = 1
            if not rex and (where.register > 3 or (where.other or 0) > 3):
                raise _NotUnderstood  # ah, ch, dh, bh
        register, other = _DWARF[where.register], where.other
        if other is not None:
            target, source = (_DWARF[other], register) if opcode < 0x8A else (register, _DWARF[other])
            _move(registers, target, registers.get(source))
        elif opcode < 0x8A:
            _store(stored, where, registers.get(register), size)
        else:
            _move(registers, register, None)
        return where.end
    if opcode == 0x8D:  # lea
        _move(registers, _DWARF[where.register], None)
        return where.end
    if opcode in (0x80, 0x81, 0x83) and where.other is not None:  # with a constant: sub of rsp, and of a truth
        return where.end + (4 if opcode == 0x81 else 1)
    if opcode in (0xC6, 0xC7) and where.other is None:
        _store(stored, where, None, 0)
        return where.end + (1 if opcode == 0xC6 else 2 if prefix == 0x66 else 4)
    raise _NotUnderstood


def _move(registers: dict[int, int], to: int, argument: int | None) -> None:
    registers.pop(to, None)
    if argument is not None:
        registers[to] = argument


def _store(stored: dict[int, tuple[int, int]], where: _Operands, argument: int | None, size: int) -> None:
    if where.frame_offset is None:
        return
    stored.pop(where.frame_offset, None)
    if argument is not None:
        stored[where.frame_offset] = argument, size


def argument_registers(function: DIE) -> Iterator[tuple[DIE, int, int, bool]]:
    """(parameter, register, bytes, whether it comes as a reference) of those parameters that come in registers.

    It ends where the calling convention needs more than sizes: at a class that comes in registers by its parts.
    """
    integers, vectors = list(_INTEGERS), list(_VECTORS)
    returned = stripped(type_of(function))
    if returned is not None and returned.tag in _CLASSES:
        if not is_in_memory(returned):
            return
        integers.pop(0)  # the address of the result
    for parameter in (child for child in function.iter_children() if child.tag == "DW_TAG_formal_parameter"):
        kind = stripped(type_of(parameter))
        size = size_of(kind) or 0
        if kind is None or not size:
            return
        if kind.tag in _CLASSES:
            if not is_in_memory(kind):
                return
            if _is_by_reference(kind) and integers:
                yield parameter, integers.pop(0), 8, True
        elif number_of(kind) == Kind.FLOATING:
            if size <= 8 and vectors:
                yield parameter, vectors.pop(0), size, False
        elif (kind.tag in _POINTERS or number_of(kind) is not None) and size <= 8:
            if integers:
                yield parameter, integers.pop(0), size, False
        else:
            return


def _is_by_reference(kind: DIE) -> bool:
    convention = kind.attributes.get("DW_AT_calling_convention")
    return convention is not None and convention.value == _BY_REFERENCE


def is_in_memory(kind: DIE) -> bool:
    """Whether a class is passed and returned by its address."""
    return _is_by_reference(kind) or (size_of(kind) or 0) > 16
