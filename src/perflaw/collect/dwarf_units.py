"""Compilation units: which one an address is in, its functions with their qualified names, its table of lines."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.ranges import RangeLists, RangeListsPair

_CPLUSPLUS = (0x04, 0x1A, 0x21, 0x2B)
"""DW_LANG_C_plus_plus and its later standards."""
_FROM_ZERO = 5
"""From this version of DWARF on, tables of files begin at 0 and not at 1."""
_SCOPES = ("DW_TAG_namespace", "DW_TAG_class_type", "DW_TAG_structure_type", "DW_TAG_union_type")
_ORIGINS = ("DW_AT_abstract_origin", "DW_AT_specification")


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A compilation unit."""

    dwarf: DWARFInfo
    """What it is part of."""
    unit: CompileUnit
    """What pyelftools reads it by."""

    @property
    def offset(self) -> int:
        """Its place, which is its identity."""
        return int(self.unit.cu_offset)

    @property
    def language(self) -> str:
        """``c++``, or ``c`` for everything else."""
        said = self.unit.get_top_DIE().attributes.get("DW_AT_language")
        return "c++" if said and said.value in _CPLUSPLUS else "c"

    def functions(self) -> Iterator[tuple[DIE, int, int]]:
        """Every function that has code, with the addresses where that begins and ends."""
        for die in self.unit.iter_DIEs():
            if die.tag == "DW_TAG_subprogram":
                for low, high in _ranges(self.dwarf, self.unit, die)[:1]:
                    yield die, low, high

    def name(self, die: DIE) -> str:
        """The name of an entry, also where another one says it."""
        said = _saying(die, "DW_AT_name")
        return said.attributes["DW_AT_name"].value.decode(errors="replace") if said else ""

    def identity(self, die: DIE) -> tuple[str, str, int]:
        """Qualified name, source file and line of a function."""
        inner = _origin(die)
        parts = [self.name(die)]
        scope = inner.get_parent()
        while scope is not None and scope.tag in _SCOPES:
            parts.append(self.name(scope) or ("(anonymous namespace)" if scope.tag == _SCOPES[0] else "(anonymous)"))
            scope = scope.get_parent()
        file, line = self._declared(die)
        return "::".join(reversed(parts)), file, line

    def _declared(self, die: DIE) -> tuple[str, int]:
        """Where: of a lambda what it is called by stands nowhere, but its class does."""
        by = die if _saying(die, "DW_AT_decl_line") else _origin(die).get_parent()
        line, file = _saying(by, "DW_AT_decl_line"), _saying(by, "DW_AT_decl_file")
        if line is None or file is None:
            return "", 0
        home = self.dwarf.get_CU_at(file.cu.cu_offset)  # with -flto another unit than this may say it
        number = file.attributes["DW_AT_decl_file"].value
        return Unit(self.dwarf, home)._file(number), int(line.attributes["DW_AT_decl_line"].value)

    def lines(self) -> list[tuple[int, int]]:
        """(address, source line) where a line begins, in order of address; line 0 behind the end of a sequence."""
        program = self.dwarf.line_program_for_CU(self.unit)
        if program is None:
            return []
        states = (entry.state for entry in program.get_entries() if entry.state is not None)
        return sorted({(one.address, 0 if one.end_sequence else one.line) for one in states})

    def _file(self, number: int) -> str:
        """A file of the unit's table; relative names are relative to where the compiler ran."""
        program = self.dwarf.line_program_for_CU(self.unit)
        if program is None:
            return ""
        first = 0 if program.header.version >= _FROM_ZERO else 1
        entries = program.header.file_entry
        if not first <= number < len(entries) + first:
            return ""
        entry = entries[number - first]
        folders = program.header.include_directory
        top = self.unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        start = top.value.decode(errors="replace") if top else ""
        at = entry.dir_index - first
        folder = folders[at].decode(errors="replace") if 0 <= at < len(folders) else ""
        return posixpath.normpath(posixpath.join(start, folder, entry.name.decode(errors="replace")))


def _origin(die: DIE) -> DIE:
    """The declaration that a definition is of: it stands where the name belongs."""
    for name in _ORIGINS:
        if name in die.attributes:
            return _origin(die.get_DIE_from_attribute(name))
    return die


def _saying(die: DIE | None, name: str) -> DIE | None:
    """The entry that has the attribute: this one, or what it refers to; None where neither has."""
    if die is None or name in die.attributes:
        return die
    for origin in _ORIGINS:
        if origin in die.attributes:
            return _saying(die.get_DIE_from_attribute(origin), name)
    return None


def _ranges(dwarf: DWARFInfo, unit: CompileUnit, die: DIE) -> list[tuple[int, int]]:
    """The addresses [low, high) that an entry covers; the first begin where it is entered."""
    low, high = die.attributes.get("DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
    if low is not None and high is not None:
        end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
        return [(low.value, end)]
    said, lists = die.attributes.get("DW_AT_ranges"), dwarf.range_lists()
    return _listed(lists, unit, said.value) if said is not None and lists is not None else []


def _listed(lists: RangeLists | RangeListsPair, unit: CompileUnit, offset: int) -> list[tuple[int, int]]:
    from elftools.dwarf.ranges import RangeEntry

    top = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base, found = top.value if top else 0, []
    for entry in lists.get_range_list_at_offset(offset, cu=unit):
        if isinstance(entry, RangeEntry):
            shift = 0 if entry.is_absolute else base
            found.append((entry.begin_offset + shift, entry.end_offset + shift))
        else:
            base = entry.base_address
    return found


class Units:
    """The compilation units of a file, by the addresses of their code."""

    def __init__(self, dwarf: DWARFInfo) -> None:
        units = [Unit(dwarf, unit) for unit in dwarf.iter_CUs()]
        found = [(low, high, one) for one in units for low, high in _ranges(dwarf, one.unit, one.unit.get_top_DIE())]
        self._code = sorted(found, key=lambda place: place[:2])

    def at(self, address: int) -> Unit | None:
        """The unit whose code the address lies in."""
        return next((unit for low, high, unit in self._code if low <= address < high), None)
