"""What stands at an address of a compiled program: names, parameters and source lines, from its DWARF.

Only the compilation units that were executed are read, for pyelftools needs some 50 µs an entry; what was read once is
kept by the file's build id.
"""

from __future__ import annotations

import json
import posixpath
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflaw.record.build import cache_folder
from perflaw.record.compiled.elf import Elf, open_elf

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.ranges import RangeLists, RangeListsPair


# ---- Compilation units: which one an address is in, its functions with their qualified names, its table of lines.

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


# ---- Names of functions from tables of symbols, for files without debug information.


class Names:
    """Functions by their address."""

    def __init__(self, symbols: Iterable[tuple[int, str]]) -> None:
        self._names: dict[int, str] = {}
        for address, name in symbols:  # several names of one function: the shortest, then the first in order
            known = self._names.get(address)
            if known is None or (len(name), name) < (len(known), known):
                self._names[address] = name

    def at(self, address: int) -> str:
        """The name of the function that begins there, demangled and without parameters; empty where it has none."""
        return without_parameters(demangled(self._names.get(address, "")))


def demangled(symbol: str) -> str:
    """A symbol of C++ as it was written; any other as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    import cxxfilt

    try:
        return str(cxxfilt.demangle(symbol))
    except cxxfilt.Error:
        return symbol


def without_parameters(name: str) -> str:
    """A demangled name up to its list of parameters, and without what it returns.

    >>> without_parameters("int ns::sum<int>(int, int) const")
    'ns::sum<int>'
    >>> without_parameters("(anonymous namespace)::S::operator()(int)")
    '(anonymous namespace)::S::operator()'
    """
    begin = end = depth = 0
    while end < len(name):
        rest = name[end:]
        skipped = next((word for word in _WHOLE if rest.startswith(word)), "")
        if skipped:
            end += len(skipped)
            continue
        if rest[0] == "(" and depth == 0:
            return name[begin:end]
        if rest[0] == " " and depth == 0:
            begin = end + 1
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(rest[0], 0)
        end += 1
    return name[begin:]


_WHOLE = (
    *("(anonymous namespace)", "operator()", "operator->", "operator<<", "operator<=", "operator<"),
    *("operator>>", "operator>=", "operator>", "operator "),
)
"""What holds brackets or spaces and is one word."""

DEBUG = Path("/usr/lib/debug/.build-id")
"""Where distributions keep debug information apart from programs."""


@dataclass(frozen=True, slots=True)
class Code:
    """A function of a compiled program."""

    name: str
    """Qualified as in the source, without its parameters; the symbol where there is no DWARF."""
    file: str = ""
    """Source file; empty where it is not known."""
    line: int = 0
    """Its line there."""
    language: str = "c"
    """``c`` or ``c++``."""
    parameters: tuple[str, ...] = ()
    """Names of its parameters."""
    lines: tuple[tuple[int, int, int], ...] = ()
    """(first, behind last, source line) of its code, in bytes from its start."""


def functions_at(module: Path, offsets: Sequence[int]) -> dict[int, Code]:
    """The functions that begin at these places of a loaded file; those that nothing is known of are left out."""
    elf = open_elf(module)
    if elf is None:
        return {}
    with elf:
        kept = _kept(elf.identity)
        missing = [offset for offset in offsets if offset not in kept]
        if missing:
            kept.update(_read(elf, missing))
            _keep(elf.identity, kept)
    return {offset: kept[offset] for offset in offsets if offset in kept}


def _read(elf: Elf, offsets: Sequence[int]) -> dict[int, Code]:
    """From the debug information, beside the program or apart; what that does not say, from the symbols."""
    wanted = {offset + elf.base: offset for offset in offsets}
    found = _from_dwarf(elf, wanted)
    symbols = list(elf.symbols())
    apart = open_elf(DEBUG / elf.identity[:2] / f"{elf.identity[2:]}.debug")
    if apart:
        with apart:
            found |= _from_dwarf(apart, wanted.keys() - found.keys())
            symbols += apart.symbols()
    names = Names(symbols)
    found |= {at: Code(name) for at in wanted.keys() - found.keys() if (name := names.at(at))}
    return {wanted[address]: code for address, code in found.items()}


def _from_dwarf(elf: Elf, addresses: Iterable[int]) -> dict[int, Code]:
    dwarf = elf.dwarf()
    if dwarf is None:
        return {}
    units = Units(dwarf)
    by_unit: dict[int, tuple[Unit, set[int]]] = {}
    for address in addresses:
        unit = units.at(address)
        if unit:
            by_unit.setdefault(unit.offset, (unit, set()))[1].add(address)
    return {address: code for unit, wanted in by_unit.values() for address, code in _of_unit(unit, wanted).items()}


def _of_unit(unit: Unit, wanted: set[int]) -> dict[int, Code]:
    found: dict[int, Code] = {}
    lines = unit.lines()
    for die, low, high in unit.functions():
        if low in wanted:
            name, file, line = unit.identity(die)
            inside = _inside(lines, low, high)
            found[low] = Code(name, file, line, unit.language, _parameters(unit, die), inside)
    return found


def _parameters(unit: Unit, die: DIE) -> tuple[str, ...]:
    """Names of the parameters; what the compiler made up (``this``) is none of them."""
    said = [unit.name(child) for child in die.iter_children() if child.tag == "DW_TAG_formal_parameter"]
    return tuple(name for name in said if name and name not in ("this", "__closure"))


def _inside(lines: Sequence[tuple[int, int]], low: int, high: int) -> tuple[tuple[int, int, int], ...]:
    """The rows (address, line) of [low, high) as intervals from its start; neighbours of one line are joined."""
    inside: list[tuple[int, int, int]] = []
    at = bisect_left(lines, (low, 0))
    while at < len(lines) and lines[at][0] < high:
        begin, line = lines[at]
        end = min(lines[at + 1][0], high) if at + 1 < len(lines) else high
        if inside and inside[-1][2] == line:
            inside[-1] = (inside[-1][0], end - low, line)
        elif end > begin:
            inside.append((begin - low, end - low, line))
        at += 1
    return tuple(inside)


# ---- kept by build id ----


def _place(identity: str) -> Path:
    return cache_folder() / f"dwarf2-{identity}.json"


def _kept(identity: str) -> dict[int, Code]:
    with suppress(OSError, ValueError, TypeError, AttributeError):  # none there, or no longer as we write it
        read: Mapping[str, Mapping[str, Any]] = json.loads(_place(identity).read_text())
        return {int(offset): _code(known) for offset, known in read.items()}
    return {}


def _code(known: Mapping[str, Any]) -> Code:
    lines = tuple((first, last, line) for first, last, line in known["lines"])
    return Code(**{**known, "parameters": tuple(known["parameters"]), "lines": lines})


def _keep(identity: str, codes: Mapping[int, Code]) -> None:
    place = _place(identity)
    with suppress(OSError):  # a cache that nobody may write to: it is read again next time
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = place.with_suffix(".part")
        part.write_text(json.dumps({str(offset): asdict(code) for offset, code in codes.items()}))
        part.replace(place)
