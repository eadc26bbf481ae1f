"""The table of one compilation unit: what to read at each call of the entry hook in its code, or at each injected function.

Reading a unit takes some 50 µs an entry, so a table is kept by the file's build id, the unit, and a digest of the code that
makes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.cache import keep, read_kept
from perflaw.record.compiled.code import code_of, entry_points
from perflaw.record.compiled.dwarf import (
    HEADERS,
    CompilationUnit,
    code_version,
    name_of,
    ranges_of,
    unit_ranges,
    with_attribute,
    with_origins,
)
from perflaw.record.compiled.elf import Elf, open_elf
from perflaw.record.compiled.features.hook_calls import hook_returns
from perflaw.record.compiled.features.locations import (
    MODULE,
    Address,
    Frames,
    InMemory,
    InRegister,
    Location,
    Locator,
    Unlocated,
)
from perflaw.record.compiled.features.programs import NUMBERS, FeatureSource, HookCall, Kind, table_of
from perflaw.record.compiled.features.prologue import argument_places, arrivals, is_in_memory, joined
from perflaw.record.compiled.features.registers import MOST_SMALL, WINDOW, argument_features, registers_read
from perflaw.record.compiled.features.types import (
    CLASSES,
    Explorer,
    forget_types,
    is_constant,
    number_of,
    stripped,
    type_of,
)

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE

_INLINED: Final = "DW_TAG_inlined_subroutine"
_PARAMETER: Final = "DW_TAG_formal_parameter"
_MAX_GLOBALS: Final = 8
_MAX_PROLOGUE: Final = 512
"""Bytes of code before the hook's call that are looked at for arguments."""
_NOTHING: Final = table_of(())
_MACHINE: Final = "EM_X86_64"
_NO_UNIT: Final = -1
_CLONE: Final = re.compile(r"\.(isra|constprop|part)\b")
"""In the names of functions that gcc made of others. Link-time optimisation gives others, which are as declared."""
RETURNED: Final = "returned"
"""Name of what a function returns, as if it was an argument."""
_RESULT: Final = 0
"""DWARF's number of rax, which holds what is returned, or its address."""
_FLOATING_RESULT: Final = 17
"""xmm0, which holds floating-point numbers."""


@cache
def _version() -> str:
    digest = blake2b(code_version().encode(), digest_size=6)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _FileIndex:
    """What all questions about a loaded file need."""

    base: int
    """Address in the file that corresponds to the start of the loaded image."""
    key: str
    """What the cache keeps things of it by."""
    has_dwarf: bool
    """Whether the file has debug information itself; else the one that the distribution keeps apart is read."""
    ranges: NDArray[np.int64]
    """A row each: first address, behind the last, place of its unit in the debug information; in order."""
    returns: NDArray[np.int64]
    """Addresses behind the calls of the entry hook, in order; of a file without hooks, the second bytes of its functions.

    The third bytes stand for their ends.
    """
    is_injected: bool
    """Whether it has no hooks."""
    frames: Frames | None
    """Its frames; None without debug information."""

    def units_at(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """The unit whose code contains each address; ``_NO_UNIT`` if that is none's."""
        if not len(self.ranges):
            return np.full(len(addresses), _NO_UNIT)
        low, high, unit = self.ranges.T
        at = np.searchsorted(low, addresses, "right") - 1
        return np.where((at >= 0) & (addresses < high[at]), unit[at], _NO_UNIT)

    def returns_of(self, unit: int) -> list[int]:
        """Addresses behind the hook's calls in the code of a unit, or in code that is no unit's."""
        found = [int(behind) for behind in self.returns[self.units_at(self.returns - 1) == unit]]
        return [place for behind in found for place in (behind, behind + 1)] if self.is_injected else found


def feature_table(
    module: Path, returns: int, with_libraries: bool = False, injected: Collection[int] | None = None
) -> bytes:
    """The table of the unit whose code calls the entry hook and is returned to at this offset of a loaded file.

    It names every call of the hook in that code, so that nobody asks for the unit again. Code without debug information is
    one unit: its functions have features by registers where they are injected, and no others are called there. Functions of
    libraries' headers have none, except ``with_libraries``: the person then chose the functions that are recorded.
    ``injected``: offsets of the functions that are looked at where there is no debug information; all of them by default.
    """
    try:
        about = module.stat()
        index = _index(module, about.st_size, about.st_mtime_ns)
    except OSError:  # the file was removed or replaced: its types are not known
        return _NOTHING
    if index is None:
        return _NOTHING
    number = int(index.units_at(np.array([returns + index.base - 1]))[0])
    if number == _NO_UNIT and not index.is_injected:
        return _without_features(index, number)
    unit = f"registers{_digest(injected)}" if number == _NO_UNIT else f"{number:x}{'-libraries' * with_libraries}"
    name = f"dwarf-features-{_version()}-{index.key}-{unit}.table"
    if kept := read_kept(name):
        return kept
    try:
        if number == _NO_UNIT:
            table = _by_registers(module, index, injected)
        else:
            table = _compile(module, index, number, with_libraries)
    except Exception:  # damaged debug information may raise anything, and costs the features, not the recording
        return _without_features(index, number)
    keep(name, table)
    return table


def _digest(offsets: Collection[int] | None) -> str:
    """A few letters that differ for other offsets; empty for all functions."""
    if offsets is None:
        return ""
    return "-" + blake2b(np.array(sorted(offsets), np.int64).tobytes(), digest_size=6).hexdigest()


def prepare_registers(module: Path, injected: Collection[int]) -> None:
    """Keep the table of functions without debug information, so that no thread of the program has to wait for it."""
    with suppress(OSError):  # the file was removed or replaced
        about = module.stat()
        index = _index(module, about.st_size, about.st_mtime_ns)
        if index and index.is_injected and (bare := index.returns_of(_NO_UNIT)):
            feature_table(module, bare[0] - index.base, injected=injected)


@lru_cache(maxsize=64)
def _index(module: Path, size: int, time: int) -> _FileIndex | None:
    """The index of a file with this size and time; None if it cannot be read or is of another machine."""
    with open_elf(module) as elf:
        if elf is None or elf.file["e_machine"] != _MACHINE:
            return None
        with open_elf(elf.debug_file) as debug:
            own = elf.dwarf()
            dwarf = own or (debug.dwarf() if debug else None)
            ranges = [(low, high, unit.offset) for low, high, unit in unit_ranges(dwarf)] if dwarf else []
            rows = np.array(ranges, np.int64).reshape(-1, 3)
            entries = np.array(sorted(entry_points(elf)), np.int64)
            hooks = np.array(hook_returns(elf), np.int64)
            returns = hooks if len(hooks) else entries + 1
            frames = Frames(own or dwarf) if dwarf else None
            return _FileIndex(elf.base, elf.key, own is not None, rows, returns, not len(hooks), frames)


def _without_features(index: _FileIndex, unit: int) -> bytes:
    """The table of a unit with nothing to read."""
    return table_of(HookCall(behind - index.base, 0, ()) for behind in index.returns_of(unit))


def _by_registers(module: Path, index: _FileIndex, injected: Collection[int] | None) -> bytes:
    """The table of the functions without debug information that are injected."""
    with open_elf(module) as elf:
        if elf is None:
            return _NOTHING
        code = code_of(elf)
        calls = []
        for behind in index.returns_of(_NO_UNIT)[::2]:  # at its entry; what it returns has no type
            start = behind - 1
            if injected is not None and start - index.base not in injected:
                continue  # nothing is called there
            features = argument_features(code.at(start, WINDOW), start, index.base or MOST_SMALL)
            calls.append(HookCall(behind - index.base, 0, features))
            calls.append(HookCall(behind + 1 - index.base, 0, ()))
        return table_of(calls)


def _compile(module: Path, index: _FileIndex, number: int, with_libraries: bool) -> bytes:
    """The table of one unit, from its debug information."""
    with open_elf(module) as elf, ExitStack() as stack:
        stack.callback(forget_types)
        if elf is None or index.frames is None:
            return _NOTHING
        debug = elf if index.has_dwarf else stack.enter_context(open_elf(elf.debug_file))
        dwarf = debug.dwarf() if debug else None
        if dwarf is None:
            return _NOTHING
        unit = CompilationUnit(dwarf, dwarf.get_CU_at(number))
        producer = unit.unit.get_top_DIE().attributes.get("DW_AT_producer")
        is_clang = producer is None or b"clang" in producer.value
        clones = (
            frozenset(one.address for one in debug.functions() if _CLONE.search(one.symbol)) if debug else frozenset()
        )
        table = _UnitTable(elf, unit, index.frames, index.returns, index.is_injected, with_libraries, clones, is_clang)
        found = {call.returns: call for call in table.calls()}
        every = (behind - index.base for behind in index.returns_of(number))
        return table_of(found.get(behind, HookCall(behind, 0, ())) for behind in every)


@dataclass(slots=True)
class _UnitTable:
    """Compiles the table of one unit."""

    elf: Elf
    unit: CompilationUnit
    frames: Frames
    returns: NDArray[np.int64]
    """Addresses behind the calls of the entry hook in the file, in order; of a file without hooks, see ``at_entry``."""
    at_entry: bool
    """Whether the addresses are those of the second bytes of functions, at whose first instruction features are read."""
    with_libraries: bool
    """Whether functions of libraries' headers have features too."""
    clones: frozenset[int] = frozenset()
    """Addresses of functions that the compiler made of others."""
    is_clang: bool = False
    """Whether clang compiled the unit."""
    _globals: list[tuple[DIE, int, int]] = field(default_factory=list)
    """(entry, address, bytes that count as its own) of the unit's variables."""

    def calls(self) -> Iterator[HookCall]:
        """All calls of the hook in the unit's code."""
        dwarf, unit = self.unit.dwarf, self.unit.unit
        entries = list(unit.iter_DIEs())
        self._globals = list(self._variables(entries))
        starts = {}
        for entry in entries:
            if entry.tag == "DW_TAG_subprogram" and (ranges := ranges_of(dwarf, unit, entry)):
                *_, declaration = with_origins(entry)
                starts[declaration.offset] = ranges[0][0]
        for entry in entries:
            if entry.tag != "DW_TAG_subprogram":
                continue
            for low, high in ranges_of(dwarf, unit, entry):
                found = self.returns[(self.returns > low) & (self.returns <= high)]
                for behind in (
                    [low + 1] if self.at_entry and low + 1 in found else [] if self.at_entry else found.tolist()
                ):
                    with suppress(Unlocated):  # a value that stands nowhere has no feature; likewise below
                        yield self._call(entry, behind, starts)
                        if self.at_entry:
                            yield HookCall(behind + 1 - self.elf.base, 0, self._returned(entry, low))

    def _call(self, function: DIE, behind: int, starts: dict[int, int]) -> HookCall:
        """What to read at one call; Unlocated if it is not known which function announces itself there."""
        pc = behind - (1 if self.at_entry else 2)  # within the call: what the call changes is still as it was
        owner = function if self.at_entry else self._innermost(function, pc)
        if not self.with_libraries and self.unit.identity(owner)[1].startswith(HEADERS):
            raise Unlocated  # what the library's own functions are called with is nobody's question, unless chosen
        announced = 0
        if owner.tag == _INLINED:
            *_, declaration = with_origins(owner)
            if declaration.offset not in starts:
                raise Unlocated
            announced = starts[declaration.offset] - self.elf.base
        locator = Locator(self.unit.unit, function, self.frames, pc, self.elf.base, self.at_entry)
        arguments = {} if owner.tag == _INLINED else self._arguments(function, behind, locator)
        features = _features(owner, locator, self._named(owner), arguments)
        if self.at_entry and pc in self.clones:
            features = (*features, *self._unnamed(pc, features))
        if self.at_entry and self.is_clang:
            features = self._passed(function, pc, features)
        return HookCall(behind - self.elf.base, announced, features)

    def _passed(self, function: DIE, pc: int, features: tuple[FeatureSource, ...]) -> tuple[FeatureSource, ...]:
        """Those of the features whose registers the function reads: clang's callers leave anything in the others."""
        bases = [{spot.base for spot, _ in feature.needed()} for feature in features]
        wanted = {NUMBERS[offset] for offsets in bases for offset in offsets if offset in NUMBERS}
        [*_, (_, end)] = [span for span in ranges_of(self.unit.dwarf, self.unit.unit, function) if span[0] == pc]
        read = registers_read(self._code(pc, end), pc, frozenset(wanted))
        return tuple(
            feature
            for feature, offsets in zip(features, bases, strict=True)
            if all(NUMBERS.get(offset) not in wanted - read for offset in offsets)
        )

    def _unnamed(self, address: int, features: tuple[FeatureSource, ...]) -> list[FeatureSource]:
        """Numbers that a clone is called with instead of the function's arguments, by register: no parameter tells of them.

        gcc passes ``box->width`` where a function needs no more of ``box``.
        """
        known = {spot for feature in features for spot, _ in feature.needed()}
        known |= {spot.pointer for spot in known if spot.pointer is not None}
        lowest = self.elf.base or MOST_SMALL
        found = argument_features(self._code(address, address + WINDOW), address, lowest)
        return [one for one in found if one.spot not in known]

    def _returned(self, function: DIE, address: int) -> tuple[FeatureSource, ...]:
        """Features of what a function returns, as they stand where it has returned.

        Compilers change what functions return that nobody outside of the file calls: gcc names these anew, clang does not.
        """
        kind = stripped(type_of(function))
        is_external = with_attribute(function, "DW_AT_external") is not None
        if kind is None or address in self.clones or (self.is_clang and not is_external):
            return ()
        explorer = Explorer()
        if kind.tag in CLASSES:
            if is_in_memory(kind):
                explorer.add(RETURNED, kind, InMemory(Address(_RESULT)))
        else:
            explorer.add(RETURNED, kind, InRegister(_FLOATING_RESULT if number_of(kind) == Kind.FLOATING else _RESULT))
        return explorer.finish()

    def _arguments(self, function: DIE, behind: int, locator: Locator) -> dict[int, Location]:
        """Where the arguments come, or where the first instructions put them, by the place of the parameter."""
        if self.at_entry:
            if not self._comes_by_convention(function, behind - 1):
                return {}
            return {one.parameter.offset: one.at_entry for one in arrivals(function, locator)}
        low = ranges_of(self.unit.dwarf, self.unit.unit, function)[0][0]
        places = argument_places(self._code(low, behind - 5)) if 0 < behind - low < _MAX_PROLOGUE else {}
        found: dict[int, Location] = {}
        for one in arrivals(function, locator) if places else ():
            stored = [(size, *places.get(register, (None, 0))) for register, size in one.parts]
            parts = [(size, place) for size, place, have in stored if place is not None and have >= size]
            if parts and len(parts) == len(stored):
                place = joined(parts)
                if not one.is_reference:
                    found[one.parameter.offset] = place
                elif isinstance(place, InMemory):
                    found[one.parameter.offset] = InMemory(place.address.pointee)
        return found

    def _comes_by_convention(self, function: DIE, address: int) -> bool:
        """Whether arguments come as the function is declared: compilers change functions that nobody outside of the file calls.

        gcc names these anew. clang does not; of what it did not optimise, all places are for the whole function.
        """
        locations = [
            child.attributes.get("DW_AT_location") for child in function.iter_children() if child.tag == _PARAMETER
        ]
        if address in self.clones or not all(locations):
            return False
        is_external = with_attribute(function, "DW_AT_external") is not None
        return not self.is_clang or is_external or all(one.form == "DW_FORM_exprloc" for one in locations if one)

    def _innermost(self, entry: DIE, pc: int) -> DIE:
        """The inlined function that ``pc`` belongs to, or the function itself."""
        for child in entry.iter_children():
            if child.tag in (_INLINED, "DW_TAG_lexical_block"):
                ranges = ranges_of(self.unit.dwarf, self.unit.unit, child)
                if any(low <= pc < high for low, high in ranges):
                    inner = self._innermost(child, pc)
                    return inner if inner.tag == _INLINED else entry if entry.tag != "DW_TAG_lexical_block" else inner
        return entry

    def _variables(self, entries: list[DIE]) -> Iterator[tuple[DIE, int, int]]:
        """Variables of the unit with a fixed address, static ones of its functions too; constants are left out."""
        locator = Locator(self.unit.unit, entries[0], self.frames, 0, self.elf.base)
        for entry in entries:
            if entry.tag == "DW_TAG_variable" and "DW_AT_location" in entry.attributes and name_of(entry):
                with suppress(Unlocated, IndexError):
                    place = locator.location(entry)
                    kind = type_of(entry)
                    if isinstance(place, InMemory) and place.address.base == MODULE and not is_constant(kind):
                        size = kind.attributes.get("DW_AT_byte_size") if kind is not None else None
                        yield entry, place.address.offsets[0] + self.elf.base, size.value if size else 8

    def _named(self, owner: DIE) -> list[DIE]:
        """The variables that the code of a function names by their address relative to the instruction."""
        if not self._globals:
            return []
        targets: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = []
        for low, high in ranges_of(self.unit.dwarf, self.unit.unit, owner):
            code = np.frombuffer(self._code(low, high), np.uint8).astype(np.uint32)
            if len(code) > 4:
                words = code[:-3] | code[1:-2] << 8 | code[2:-1] << 16 | code[3:] << 24
                behind = low + 4 + np.arange(len(words))
                # so many bytes of the instruction may stand behind the address
                targets += [behind + immediate + words.view(np.int32) for immediate in (0, 1, 2, 4)]
        if not targets:
            return []
        named = np.concatenate(targets)
        found = [entry for entry, at, size in self._globals if ((named >= at) & (named < at + size)).any()]
        return found[:_MAX_GLOBALS]

    def _code(self, low: int, high: int) -> bytes:
        return self.elf.bytes_at(low, high - low)


def _features(
    owner: DIE, locator: Locator, variables: list[DIE], arguments: dict[int, Location]
) -> tuple[FeatureSource, ...]:
    """Features of the parameters of a function and of the variables that it names."""
    explorer = Explorer()
    names = set()
    for parameter in (child for child in owner.iter_children() if child.tag == _PARAMETER):
        name = name_of(parameter)
        if not name:
            continue
        with suppress(Unlocated):
            names.add(name)
            explorer.add(name, type_of(parameter), _place(locator, parameter, arguments))
    for variable in variables:
        if name_of(variable) not in names:
            with suppress(Unlocated):
                explorer.add(name_of(variable), type_of(variable), locator.location(variable))
    return explorer.finish()


def _place(locator: Locator, parameter: DIE, arguments: dict[int, Location]) -> Location:
    """Where DWARF says that a parameter is; where it tells a place for later, where the first instructions put it."""
    try:
        return locator.location(parameter)
    except Unlocated:
        if locator.stores_late and parameter.offset in arguments:
            return arguments[parameter.offset]
        raise
