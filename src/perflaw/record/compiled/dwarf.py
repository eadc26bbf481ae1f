"""The functions at addresses of a compiled program: names, parameters and source lines, from its DWARF.

Only the compilation units that were executed are read, because pyelftools needs some 50 µs an entry. The result is kept by
the file's build id and by a digest of the code that produces it.
"""

from __future__ import annotations

import json
import posixpath
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perflaw.record.cache import keep, read_kept
from perflaw.record.compiled import elf as elf_module
from perflaw.record.compiled.elf import Elf, identify, open_elf

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarfinfo import DWARFInfo

_CPLUSPLUS: Final = (0x04, 0x1A, 0x21, 0x2B)
"""DW_LANG_C_plus_plus and its later standards."""
HEADERS: Final = ("/usr/include/", "/usr/lib/")
"""Code from files here belongs to libraries, even if the compiler put it into the person's program."""
_FROM_ZERO: Final = 5
"""From this version of DWARF on, file tables begin at 0 instead of 1."""
_SCOPES: Final = ("DW_TAG_namespace", "DW_TAG_class_type", "DW_TAG_structure_type", "DW_TAG_union_type")
_ORIGINS: Final = ("DW_AT_abstract_origin", "DW_AT_specification")
_WHOLE: Final = (
    *("(anonymous namespace)", "operator()", "operator->", "operator<<", "operator<=", "operator<"),
    *("operator>>", "operator>=", "operator>", "operator "),
)
"""Texts in names that contain brackets or spaces and are one word."""


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """A function of a compiled program."""

    name: str
    """Qualified name as in the source, without parameters; the symbol if there is no DWARF."""
    file: str = ""
    """Source file; empty if unknown."""
    line: int = 0
    """Source line."""
    language: str = "c"
    """``c`` or ``c++``."""
    parameters: tuple[str, ...] = ()
    """Names of its parameters."""
    lines: tuple[tuple[int, int, int], ...] = ()
    """(first, behind last, source line) of its code, in bytes from its start."""


def functions_at(module: Path, offsets: Sequence[int]) -> dict[int, FunctionCode]:
    """The functions that begin at these offsets of a loaded file; functions that nothing is known of are left out."""
    if (about := identify(module)) is None:
        return {}
    name = f"dwarf-{code_version()}-{about[1]}.json"
    known = _read_cache(name)
    if missing := [offset for offset in offsets if offset not in known]:
        try:
            with open_elf(module) as elf:
                known.update(_read(elf, missing) if elf else {})
        except Exception:  # pyelftools raises whatever its code meets in damaged debug information
            pass
        else:
            keep(name, json.dumps({str(offset): asdict(code) for offset, code in known.items()}).encode())
    return {offset: known[offset] for offset in offsets if offset in known}


@cache
def code_version() -> str:
    """Digest of the modules and packages that produce the cached functions: a fix of theirs outdates the cache."""
    digest = blake2b(digest_size=6)
    for file in (__file__, elf_module.__file__):
        digest.update(Path(file).read_bytes())
    digest.update(f"{version('pyelftools')} {version('cxxfilt')}".encode())
    return digest.hexdigest()


def _read_cache(name: str) -> dict[int, FunctionCode]:
    """The functions of a cache file by offset; empty if there is no such file, or it is damaged."""
    with suppress(ValueError, TypeError, AttributeError, KeyError):  # DWARF is read again
        cached: Mapping[str, Mapping[str, Any]] = json.loads(read_kept(name) or b"{}")
        codes = {}
        for offset, fields in cached.items():
            lines = tuple((first, last, line) for first, last, line in fields["lines"])
            codes[int(offset)] = FunctionCode(**{**fields, "parameters": tuple(fields["parameters"]), "lines": lines})
        return codes
    return {}


def _read(elf: Elf, offsets: Sequence[int]) -> dict[int, FunctionCode]:
    """Functions from the debug information, in the program or apart from it; the others from the symbols."""
    wanted = {offset + elf.base: offset for offset in offsets}
    codes = _from_dwarf(elf, wanted)
    symbols = list(elf.functions())
    with open_elf(elf.debug_file) as debug:
        if debug:
            codes |= _from_dwarf(debug, wanted.keys() - codes.keys())
            symbols += debug.functions()
    names: dict[int, str] = {}
    for function in symbols:  # of several names of one function, the shortest, then the first in order
        name = names.get(function.address, function.symbol)
        names[function.address] = min(name, function.symbol, key=lambda name: (len(name), name))
    for address in wanted.keys() - codes.keys():
        if name := without_parameters(demangled(names.get(address, ""))):
            codes[address] = FunctionCode(name)
    return {wanted[address]: code for address, code in codes.items()}


def demangled(symbol: str) -> str:
    """A symbol of C++ as it was written; any other symbol as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    import cxxfilt

    try:
        return str(cxxfilt.demangle(symbol))
    except cxxfilt.Error:
        return symbol


def type_with_table(module: Path, offset: int, symbol: str) -> str:
    """The class whose virtual table lies at an offset of a loaded file; ``?`` if nobody names it."""
    if not symbol:
        with open_elf(module) as elf:
            named = elf.object_at(offset + elf.base) if elf else ""
            symbol = named
    words = demangled(symbol)
    return words.removeprefix("vtable for ") if words.startswith("vtable for ") else "?"


def without_parameters(name: str) -> str:
    """A demangled name without its return type and up to its list of parameters.

    >>> without_parameters("int ns::sum<int>(int, int) const")
    'ns::sum<int>'
    >>> without_parameters("(anonymous namespace)::S::operator()(int)")
    '(anonymous namespace)::S::operator()'
    """
    begin = end = depth = 0
    while end < len(name):
        rest = name[end:]
        whole = next((word for word in _WHOLE if rest.startswith(word)), "")
        if whole:
            end += len(whole)
            continue
        if rest[0] == "(" and depth == 0:
            return name[begin:end]
        if rest[0] == " " and depth == 0:
            begin = end + 1
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(rest[0], 0)
        end += 1
    return name[begin:]


def _from_dwarf(elf: Elf, addresses: Iterable[int]) -> dict[int, FunctionCode]:
    """The functions that begin at these addresses, from the units of the debug information that contain them."""
    dwarf = elf.dwarf()
    if dwarf is None:
        return {}
    ranges = unit_ranges(dwarf)
    by_unit: dict[int, tuple[CompilationUnit, set[int]]] = {}
    for address in addresses:
        executed = next((unit for low, high, unit in ranges if low <= address < high), None)
        if executed:
            by_unit.setdefault(executed.offset, (executed, set()))[1].add(address)
    return {address: code for unit, wanted in by_unit.values() for address, code in unit.codes(wanted).items()}


def unit_ranges(dwarf: DWARFInfo) -> list[tuple[int, int, CompilationUnit]]:
    """The addresses [low, high) that compilation units cover, in order."""
    units = [CompilationUnit(dwarf, unit) for unit in dwarf.iter_CUs()]
    ranges = [(low, high, unit) for unit in units for low, high in ranges_of(dwarf, unit.unit, unit.unit.get_top_DIE())]
    return sorted(ranges, key=lambda place: place[:2])


@dataclass(frozen=True, slots=True, eq=False)
class CompilationUnit:
    """A compilation unit: its functions with their qualified names, and its table of lines."""

    dwarf: DWARFInfo
    """The debug information that it is part of."""
    unit: CompileUnit
    """Its reader of pyelftools."""

    @property
    def offset(self) -> int:
        """Its place in the debug information, which identifies it."""
        return int(self.unit.cu_offset)

    def codes(self, addresses: set[int]) -> dict[int, FunctionCode]:
        """The functions that begin at these addresses."""
        codes: dict[int, FunctionCode] = {}
        lines = self.lines()
        attribute = self.unit.get_top_DIE().attributes.get("DW_AT_language")
        language = "c++" if attribute and attribute.value in _CPLUSPLUS else "c"
        for die in self.unit.iter_DIEs():
            if die.tag != "DW_TAG_subprogram":
                continue
            for low, high in ranges_of(self.dwarf, self.unit, die)[:1]:
                if low in addresses:
                    name, file, line = self.identity(die)
                    codes[low] = FunctionCode(
                        name, file, line, language, self.parameters(die), _inside(lines, low, high)
                    )
        return codes

    def identity(self, die: DIE) -> tuple[str, str, int]:
        """Qualified name, source file and line of a function."""
        *_, declaration = with_origins(die)
        parts = [name_of(die)]
        scope = declaration.get_parent()
        while scope is not None and scope.tag in _SCOPES:
            parts.append(name_of(scope) or ("(anonymous namespace)" if scope.tag == _SCOPES[0] else "(anonymous)"))
            scope = scope.get_parent()
        # A lambda's call operator has no line of its own, but its class has.
        place = die if with_attribute(die, "DW_AT_decl_line") else declaration.get_parent()
        line, file = with_attribute(place, "DW_AT_decl_line"), with_attribute(place, "DW_AT_decl_file")
        name = "::".join(reversed(parts))
        if line is None or file is None:
            return name, "", 0
        home = self.dwarf.get_CU_at(file.cu.cu_offset)  # with -flto the entry may stand in another unit
        number = file.attributes["DW_AT_decl_file"].value
        return name, CompilationUnit(self.dwarf, home).file(number), int(line.attributes["DW_AT_decl_line"].value)

    def parameters(self, die: DIE) -> tuple[str, ...]:
        """Names of a function's parameters without those that the compiler adds (``this``)."""
        names = [name_of(child) for child in die.iter_children() if child.tag == "DW_TAG_formal_parameter"]
        return tuple(name for name in names if name and name not in ("this", "__closure"))

    def lines(self) -> list[tuple[int, int]]:
        """(address, source line) where a line begins, in order of address; line 0 behind the end of a sequence."""
        program = self.dwarf.line_program_for_CU(self.unit)
        if program is None:
            return []
        states = (entry.state for entry in program.get_entries() if entry.state is not None)
        return sorted({(state.address, 0 if state.end_sequence else state.line) for state in states})

    def file(self, number: int) -> str:
        """A file of the unit's file table; relative names are relative to the folder in which the compiler ran."""
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


def name_of(die: DIE) -> str:
    """The name of an entry, which may stand at the entry that it refers to."""
    named = with_attribute(die, "DW_AT_name")
    return named.attributes["DW_AT_name"].value.decode(errors="replace") if named else ""


def with_origins(die: DIE | None) -> Iterator[DIE]:
    """An entry and those that it refers to; the last is the declaration, which stands in the scope of the name."""
    while die is not None:
        yield die
        name = next((name for name in _ORIGINS if name in die.attributes), None)
        die = die.get_DIE_from_attribute(name) if name else None


def with_attribute(die: DIE | None, name: str) -> DIE | None:
    """The entry that has the attribute: this one, or one that it refers to; None if none has."""
    return next((one for one in with_origins(die) if name in one.attributes), None)


def ranges_of(dwarf: DWARFInfo, unit: CompileUnit, die: DIE) -> list[tuple[int, int]]:
    """The addresses [low, high) that an entry covers; the first range begins at its entry point."""
    low, high = die.attributes.get("DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
    if low is not None and high is not None:
        end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
        return [(low.value, end)]
    offset, lists = die.attributes.get("DW_AT_ranges"), dwarf.range_lists()
    if offset is None or lists is None:
        return []
    from elftools.dwarf.ranges import RangeEntry

    top = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base, ranges = top.value if top else 0, []
    for entry in lists.get_range_list_at_offset(offset.value, cu=unit):
        if isinstance(entry, RangeEntry):
            shift = 0 if entry.is_absolute else base
            ranges.append((entry.begin_offset + shift, entry.end_offset + shift))
        else:
            base = entry.base_address
    return ranges


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
