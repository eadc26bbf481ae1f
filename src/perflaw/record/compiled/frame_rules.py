"""Where the code of a file keeps what its caller needs again, at each instruction, as its tables for unwinding say.

The tables are ``.eh_frame`` (System V ABI, DWARF 5 §6.4). Only the entries that are asked for are read: all of a large file
take seconds.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Final

import numpy as np

from perflaw.record.compiled.elf import Elf

STACK_POINTER: Final = 7
RETURN_ADDRESS: Final = 16
"""Numbers of the registers in the tables of x86-64 (System V ABI, §3.6.2)."""
_INDEX: Final = bytes([1, 0x1B, 0x03, 0x3B])
"""Version and encodings of the index that all linkers write: addresses relative to it, of four bytes, in their order."""
_INDEX_HEAD: Final = 12
_ENTRY: Final = np.dtype([("code", "<i4"), ("entry", "<i4")])


@dataclass(frozen=True, slots=True)
class FrameRule:
    """How the frame of a function is found, and what it keeps there of its caller."""

    register: int
    """The frame ends so many bytes behind where this register points, the stack pointer as a rule."""
    offset: int
    saved: Mapping[int, int]
    """Register of the caller → where it is kept, in bytes from the end of the frame."""
    function: int
    """Address of the function's first instruction."""


class FrameRules:
    """The rules of one file; addresses are those in the file."""

    def __init__(self, elf: Elf) -> None:
        self._data = self._index = b""
        self._at = self._index_at = 0
        sections = {one.name: one for one in elf.file.iter_sections() if one.name in (".eh_frame", ".eh_frame_hdr")}
        if len(sections) == 2 and all(one["sh_type"] != "SHT_NOBITS" for one in sections.values()):
            self._data, self._at = sections[".eh_frame"].data(), int(sections[".eh_frame"]["sh_addr"])
            self._index, self._index_at = sections[".eh_frame_hdr"].data(), int(sections[".eh_frame_hdr"]["sh_addr"])
        is_known = self._index[: len(_INDEX)] == _INDEX
        usable = (len(self._index) - _INDEX_HEAD) // _ENTRY.itemsize * is_known
        self._entries = np.frombuffer(self._index, _ENTRY, max(usable, 0), _INDEX_HEAD if usable > 0 else 0)
        self._known: dict[int, FrameRule | None] = {}

    def at(self, address: int) -> FrameRule | None:
        """The rule of the code at an address; None if the tables do not tell, or in a way that only machines follow."""
        if address not in self._known:
            try:
                self._known[address] = self._read(address)
            except Exception:  # pyelftools raises whatever its code meets in damaged tables
                self._known[address] = None
        return self._known[address]

    def _read(self, address: int) -> FrameRule | None:
        from elftools.dwarf.callframe import FDE, CallFrameInfo
        from elftools.dwarf.structs import DWARFStructs

        place = int(np.searchsorted(self._entries["code"], address - self._index_at, side="right")) - 1
        if place < 0:
            return None
        own = self._index_at + int(self._entries["entry"][place]) - self._at
        (back,) = struct.unpack_from("<I", self._data, own + 4)
        common = self._entry(own + 4 - back)
        # A table of these two entries alone, the second of which points back to the first.
        entry = bytearray(self._entry(own))
        struct.pack_into("<I", entry, 4, len(common) + 4)
        table = common + bytes(entry) + bytes(4)
        structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
        entries = CallFrameInfo(BytesIO(table), len(table), self._at + own - len(common), structs, for_eh_frame=True)
        (found,) = (one for one in entries.get_entries() if isinstance(one, FDE))
        start = found["initial_location"]
        is_of_signal = found.cie is not None and b"S" in found.cie.header["augmentation"]
        if is_of_signal or not start <= address < start + found["address_range"]:
            return None
        rows = [row for row in found.get_decoded().table if row["pc"] <= address]
        if not rows or rows[-1]["cfa"].expr is not None:
            return None
        saved = {one: rule.arg for one, rule in rows[-1].items() if isinstance(one, int) and rule.type == "OFFSET"}
        return FrameRule(rows[-1]["cfa"].reg, rows[-1]["cfa"].offset, saved, start)

    def _entry(self, at: int) -> bytes:
        (length,) = struct.unpack_from("<I", self._data, at)
        return self._data[at : at + 4 + length]
