"""Functions that the tables for unwinding (``.eh_frame``) name: all that a stripped file tells of where its functions begin.

pyelftools reads these tables too, but decodes each instruction of theirs, which takes half a minute for a large library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from perflaw.record.compiled.elf import Elf

_FORMATS: Final = {0x00: "<Q", 0x03: "<I", 0x04: "<Q", 0x0B: "<i", 0x0C: "<q"}
"""How an address is written, by the lower four bits of its encoding (DW_EH_PE); not those of variable length."""
_FORMAT_BITS, _RELATIVE, _MODIFIERS = 0x0F, 0x10, 0xF0
_LONG: Final = 0xFFFFFFFF
_ADVANCE: Final = 0x40
"""DW_CFA_advance_loc, with the step in the lower six bits; ``_STEPS`` are its longer forms, and the padding."""
_STEPS: Final = (0x00, 0x01, 0x02, 0x03, 0x04)


class _Common(NamedTuple):
    """What the entries of several functions have in common (CIE)."""

    encoding: int
    """Of addresses."""
    has_length: bool
    """Whether the length of what follows the addresses is told."""
    is_of_signal: bool
    """Whether the code is entered by a signal."""


def called_functions(elf: Elf) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the code whose table begins as that of a called function does."""
    section = elf.file.get_section_by_name(".eh_frame")
    if section is None or section["sh_type"] == "SHT_NOBITS":
        return
    with suppress(struct.error, IndexError, ValueError):  # it is damaged: nothing is known of what follows
        yield from _entries(section.data(), int(section["sh_addr"]))


def _entries(data: bytes, first: int) -> Iterator[tuple[int, int]]:
    """The functions of the tables that stand at the address ``first``."""
    known: dict[int, _Common | None] = {}
    at = 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        if length in (0, _LONG):  # the end; a table of 4 GB is none
            return
        begin, at = at + 4, at + 4 + length
        (back,) = struct.unpack_from("<I", data, begin)
        if not back:
            continue
        if (place := begin - back + 4) not in known:
            known[place] = _common(data, place)
        if (common := known[place]) is None or common.is_of_signal:
            continue
        if found := _called(data[begin + 4 : at], first + begin + 4, common):
            yield found


def _called(entry: bytes, address: int, common: _Common) -> tuple[int, int] | None:
    """(address, bytes) of the code of an entry that stands at this address; None if it is not that of a called function."""
    form = _FORMATS.get(common.encoding & _FORMAT_BITS)
    if form is None or common.encoding & _MODIFIERS not in (0, _RELATIVE):
        return None
    width = struct.calcsize(form)
    (start,) = struct.unpack_from(form, entry)
    (size,) = struct.unpack_from(form.upper(), entry, width)
    if common.encoding & _RELATIVE:
        start += address
    at = 2 * width
    if common.has_length:
        length, at = _number(entry, at)
        at += length
    first = entry[at] if at < len(entry) else 0
    # The frame is at first that of a call.
    return (start, size) if first & ~0x3F == _ADVANCE or first in _STEPS else None


def _common(data: bytes, place: int) -> _Common | None:
    """The common entry whose id stands at ``place``; None if it is of a kind that is not known."""
    at = place + 5  # behind its id and version
    end = data.index(b"\0", at)
    letters, at = data[at:end].decode("ascii", "replace"), end + 1
    for _ in range(3):  # alignments and the register of the return address
        _, at = _number(data, at)
    if letters and letters[0] != "z":
        return None
    encoding = 0
    if letters:
        _, at = _number(data, at)
    for letter in letters[1:]:
        if letter == "R":
            encoding = data[at]
        elif letter == "P":
            if (form := _FORMATS.get(data[at] & _FORMAT_BITS)) is None:
                return None
            at += struct.calcsize(form)
        at += letter in "RPL"
    return _Common(encoding, bool(letters), "S" in letters)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length (LEB128), and what is behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80:
            return value, at
