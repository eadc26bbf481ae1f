"""Where the arguments of a function that clang did not optimise are when it calls the entry hook (x86-64).

DWARF names their places in the frame, but clang stores them there behind the hook's call. Before it, they are where the first
instructions put them, which are few and simple. What is not understood gives no places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from perflaw.record.compiled.dwarf import name_of
from perflaw.record.compiled.features.locations import (
    Address,
    InMemory,
    InRegister,
    Location,
    Locator,
    Pieces,
    Unlocated,
)
from perflaw.record.compiled.features.programs import Kind
from perflaw.record.compiled.features.types import POINTERS, extents, number_of, offset_of, size_of, stripped, type_of

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE

_DWARF: Final = (0, 2, 1, 3, 7, 6, 4, 5, *range(8, 16))
"""Number of a register in instructions → DWARF's."""
_FIRST_VECTOR: Final = 17
_FRAME: Final = 6
"""DWARF's number of rbp."""
_STACK: Final = 7
"""DWARF's number of rsp."""
_INTEGERS: Final = (5, 4, 1, 2, 8, 9)
"""DWARF's numbers of rdi, rsi, rdx, rcx, r8 and r9, in which the first arguments come."""
_VECTORS: Final = tuple(range(_FIRST_VECTOR, _FIRST_VECTOR + 8))
CLASSES: Final = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
"""Tags of what may come in parts."""
_CONVENTION: Final = "DW_AT_calling_convention"
_BY_REFERENCE: Final = 4
"""DW_CC_pass_by_reference."""


_MOST_ELEMENTS: Final = 4096
"""Of an array within an argument that is looked at."""


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


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where an argument comes, by the calling convention."""

    parameter: DIE
    """Its entry."""
    parts: tuple[tuple[int, int], ...]
    """(register, bytes) of each part; none if it comes in memory."""
    above: int = 0
    """Of one that comes in memory, bytes of others between the return address and it."""
    is_reference: bool = False
    """Whether its address comes instead of it."""

    @property
    def at_entry(self) -> Location:
        """Where it is when the function's first instruction is executed."""
        if not self.parts:
            place: InMemory = InMemory(Address(_STACK, (8 + self.above,)))
            return InMemory(place.address.pointee) if self.is_reference else place
        if self.is_reference:
            return InMemory(Address(self.parts[0][0]))
        return joined([(size, InRegister(register)) for register, size in self.parts])


def joined(parts: Sequence[tuple[int, InRegister | InMemory]]) -> Location:
    """The place of a value whose parts, bytes and place of each, are given."""
    return parts[0][1] if len(parts) == 1 else Pieces(tuple(parts))


def arrivals(function: DIE, locator: Locator) -> Iterator[Arrival]:
    """Where the arguments of a function come. It ends where that is not known."""
    free = {True: list(_VECTORS), False: list(_INTEGERS)}
    above = 0
    with suppress(Unlocated):
        returned = stripped(type_of(function))
        if returned is not None and returned.tag in CLASSES and (is_made(returned) or _words(returned) is None):
            free[False].pop(0)  # the address of the result
        for parameter in (child for child in function.iter_children() if child.tag == "DW_TAG_formal_parameter"):
            kind = stripped(type_of(parameter))
            if kind is None or not (size := size_of(kind)):
                return
            is_reference = kind.tag in CLASSES and _comes_as_reference(kind, parameter, locator)
            words = ((False, 8),) if is_reference else _words(kind)
            if words and all(len(free[where]) >= sum(one == where for one, _ in words) for where in free):
                yield Arrival(parameter, tuple((free[where].pop(0), size) for where, size in words), 0, is_reference)
            elif words != ():
                yield Arrival(parameter, (), above, is_reference)
                above += 8 if is_reference else (size + 7) // 8 * 8


def _words(kind: DIE) -> tuple[tuple[bool, int], ...] | None:
    """(whether it comes in a vector register, bytes) of each 8 bytes of a type; None if it comes in memory.

    Unlocated if the calling convention (System V, 3.2.3) needs more than is read here.
    """
    size = size_of(kind) or 0
    leaves = list(_leaves(kind, 0))
    if is_in_memory(kind):
        return None
    if not leaves:
        return ()  # nothing comes for an empty class
    words = []
    for begin in range(0, size, 8):
        inside = [is_floating for at, is_floating in leaves if begin <= at < begin + 8]
        if not inside:
            raise Unlocated
        words.append((all(inside), min(8, size - begin)))
    return tuple(words)


def _leaves(kind: DIE, offset: int) -> Iterator[tuple[int, bool]]:
    """(offset, whether it is a floating-point number) of each number or pointer of a type; Unlocated for any other."""
    number, size = number_of(kind), size_of(kind) or 0
    if kind.tag in POINTERS or (number is not None and size <= 8):
        if offset % size:
            raise Unlocated
        yield offset, number == Kind.FLOATING
    elif kind.tag == "DW_TAG_array_type":
        element, count = stripped(type_of(kind)), prod(extents(kind))
        if element is None or not 0 < count <= _MOST_ELEMENTS:
            raise Unlocated
        for at in range(count):
            yield from _leaves(element, offset + at * (size_of(element) or 0))
    elif kind.tag in CLASSES:
        for member in kind.iter_children():
            if member.tag in ("DW_TAG_member", "DW_TAG_inheritance") and "DW_AT_external" not in member.attributes:
                inner, bits = stripped(type_of(member)), member.attributes.get("DW_AT_data_bit_offset")
                if bits is not None:
                    yield offset + bits.value // 8, False
                elif inner is not None and (begin := offset_of(member, kind)) is not None:
                    yield from _leaves(inner, offset + begin)
                else:
                    raise Unlocated
    else:
        raise Unlocated


def _comes_as_reference(kind: DIE, parameter: DIE, locator: Locator) -> bool:
    """Whether a class's address comes instead of it; Unlocated if that is not known.

    clang says so at the class. gcc does not, but gives a place that is relative to a pointer.
    """
    if _CONVENTION in kind.attributes:
        return _is_by_reference(kind)
    with suppress(Unlocated):
        place = locator.evaluated(parameter)
        if isinstance(place, InMemory):
            return len(place.address.offsets) > 1 or place.address.base not in (_FRAME, _STACK)
        return False
    return is_made(kind)


def is_made(kind: DIE) -> bool:
    """Whether a class comes by its address because functions of its own copy or destroy it; Unlocated if not known."""
    if _CONVENTION in kind.attributes:
        return _is_by_reference(kind)
    name = name_of(kind).partition("<")[0]
    for child in kind.iter_children():
        if child.tag == "DW_TAG_subprogram" and name_of(child).lstrip("~") == name:
            raise Unlocated
        inner = stripped(type_of(child)) if child.tag in ("DW_TAG_member", "DW_TAG_inheritance") else None
        if inner is not None and inner.tag in CLASSES and "DW_AT_external" not in child.attributes:
            is_made(inner)
    return False


def _is_by_reference(kind: DIE) -> bool:
    convention = kind.attributes.get(_CONVENTION)
    return convention is not None and convention.value == _BY_REFERENCE


def is_in_memory(kind: DIE) -> bool:
    """Whether a class is passed and returned by its address."""
    return _is_by_reference(kind) or (size_of(kind) or 0) > 16
