"""What stands at an address of a compiled program: names, parameters and source lines, from its DWARF.

Only the compilation units that were executed are read, for pyelftools needs some 50 µs an entry; what was read once is
kept by the file's build id.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflaw.collect.build import cache_folder
from perflaw.collect.dwarf_names import Names
from perflaw.collect.dwarf_units import Unit, Units
from perflaw.collect.elf import Elf, open_elf

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE

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
