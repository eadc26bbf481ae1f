"""Whether selected functions may have been inlined into others of a compiled file, as its code tells.

A compiler may let functions that it inlined into one function share a call of a hook. So a call that lies in another function's
code may only be taken out (``native/compiled/silence.h``) if no selected function shares it. Where a function was inlined, its
hooks are called with its address, which therefore stands in the code of the other function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from perflaw.record.compiled.dwarf import CompilationUnit, name_of, unit_ranges
from perflaw.record.compiled.elf import SizeAndNames, open_elf

if TYPE_CHECKING:
    from perflaw.record.compiled.elf import Elf

_EXECUTABLE: Final = 0x4
"""SHF_EXECINSTR: a section has code."""
_MAX_UNITS: Final = 16
"""Units of which the debug information is looked at: each takes some tenths of a second."""
_START_BYTES: Final = 64
"""Code of the C library where a program begins, which takes the address of ``main``."""
_CALLS: Final = (0xE8, 0xE9)
"""Instructions that call and jump to a function, and so need its address as well."""


def may_be_inlined(module: Path, selected: Mapping[int, SizeAndNames]) -> bool:
    """Whether one of these functions, by offset, may be part of another one's code, or of its own once more.

    It may if it calls itself, or if its address is taken elsewhere, unless the debug information of that place tells of no such
    inlining. True if the file cannot be read.
    """
    with open_elf(module) as elf:
        if elf is None:
            return True
        functions = {offset + elf.base: about for offset, about in selected.items()}
        addresses = np.array(sorted(functions), np.int64)
        if addresses.size and _is_in_table(elf, addresses):
            return True
        taken: dict[int, frozenset[str]] = {}
        for place, named, is_call in _mentions(elf, addresses):
            size, names = functions[named]
            is_own = named <= place < named + size
            if is_call and is_own:
                return True
            is_start = 0 <= place - elf.file["e_entry"] < _START_BYTES
            if not is_call and not is_own and not is_start:
                taken[place] = names
        return bool(taken) and _are_inlined(elf, taken)


def _are_inlined(elf: Elf, taken: Mapping[int, frozenset[str]]) -> bool:
    """Whether functions of these names may have been inlined into the units of the places where their addresses are taken."""
    dwarf, wanted = elf.dwarf(), frozenset(chain.from_iterable(taken.values()))
    if dwarf is None or any("(" in name for name in wanted):  # names of C++ are written in several ways
        return True
    ranges, units = unit_ranges(dwarf), dict[int, CompilationUnit]()
    for place in taken:
        unit = next((unit for low, high, unit in ranges if low <= place < high), None)
        if unit is None:
            return True
        units[unit.offset] = unit
    return len(units) > _MAX_UNITS or any(
        die.tag == "DW_TAG_inlined_subroutine" and name_of(die) in wanted
        for unit in units.values()
        for die in unit.unit.iter_DIEs()
    )


def _mentions(elf: Elf, addresses: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[tuple[int, int, bool]]:
    """Where code names one of these addresses, relative to the next instruction or as it is; which; whether it calls it."""
    for section in elf.file.iter_sections():
        if not section["sh_flags"] & _EXECUTABLE:
            continue
        code, start = section.data(), int(section["sh_addr"])
        for shift in range(4):
            words = np.frombuffer(code, "<i4", (len(code) - shift) // 4, shift).astype(np.int64)
            places = start + shift + 4 * np.arange(len(words))
            for named in (words + places + 4, *([words] if elf.is_at_fixed_place else [])):
                # A distance of 0 is padding in front of a function.
                for at in np.flatnonzero(np.isin(named, addresses) & (words != 0)).tolist():
                    before = shift + 4 * at - 1
                    yield start + before, int(named[at]), before >= 0 and code[before] in _CALLS


def _is_in_table(elf: Elf, addresses: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    """Whether the loader puts one of these addresses into the table from which code takes addresses."""
    from elftools.elf.relocation import RelocationSection
    from elftools.elf.sections import SymbolTableSection

    table, known = elf.file.get_section_by_name(".got"), set(addresses.tolist())
    if table is None:
        return False
    for section in elf.file.iter_sections():
        if isinstance(section, RelocationSection) and section.is_RELA():
            symbols = elf.file.get_section(section["sh_link"])
            for entry in section.iter_relocations():
                if 0 <= entry["r_offset"] - table["sh_addr"] < table["sh_size"]:
                    number, value = entry["r_info_sym"], 0
                    if number and isinstance(symbols, SymbolTableSection):
                        value = symbols.get_symbol(number)["st_value"]
                    if value + entry["r_addend"] in known:
                        return True
    return False
