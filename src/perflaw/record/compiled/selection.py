"""Which functions of a compiled program are recorded, for ``--select`` and ``--exclude``.

The hooks know addresses, names are known here. So on first sight of a file that code was loaded from, the recorded
program asks: it puts ``<digest>.ask`` into the spool's folder ``chosen`` and waits for ``<digest>`` (``selected.c``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.record.compiled.dwarf import DEBUG, demangled, without_parameters
from perflaw.record.compiled.elf import Elf, open_elf

FOLDER: Final = "chosen"
_MAGIC: Final = int.from_bytes(b"FPRFSEL1", "little")
HEAD: Final = np.dtype([("magic", "<u8"), ("count", "<u8"), ("others", "<u8")])
NAMELESS: Final[tuple[int, frozenset[str]]] = (0, frozenset())
"""What is known of a function that no symbol names: its size and its names."""
PLACE: Final = np.dtype([("offset", "<u8"), ("size", "<u4"), ("wanted", "<u4")])


@dataclass(frozen=True, slots=True)
class Globs:
    """What the person chose; false where that is everything."""

    select: tuple[str, ...] = ()
    """Record these alone; empty: all."""
    exclude: tuple[str, ...] = ()
    """Never record these."""

    def __bool__(self) -> bool:
        return bool(self.select or self.exclude)

    def wants(self, names: Iterable[str]) -> bool:
        """Whether a function that goes by these names is recorded."""
        known = list(names)
        return (not self.select or _any(self.select, known)) and not _any(self.exclude, known)


EVERYTHING: Final = Globs()


@dataclass(frozen=True, slots=True)
class Chooser:
    """Answers what recorded processes ask. One serves all runs of a session."""

    globs: Globs
    """What the person chose."""
    _known: dict[str, bytes] = field(default_factory=dict)

    def answer(self, spool: Path) -> None:
        """Answer what was asked since the last time; a spool that the program removed asks nothing."""
        with suppress(OSError):  # the program removed its spool, or a full disk: what waits for the answer gives up
            for asked in (spool / FOLDER).glob("*.ask"):
                part, whole = asked.with_suffix(".told"), asked.with_suffix("")
                part.write_bytes(self._of(asked.read_bytes().decode(errors="surrogateescape")))
                part.replace(whole)
                asked.unlink()

    def _of(self, module: str) -> bytes:
        if module not in self._known:
            self._known[module] = chosen(functions(Path(module)), self.globs)
        return self._known[module]


def chosen(named: Mapping[int, tuple[int, frozenset[str]]], globs: Globs) -> bytes:
    """The answer for a file whose functions are named: offset → (size, names). Those without a name match no glob."""
    places = np.zeros(len(named), PLACE)
    for place, offset in zip(places, sorted(named), strict=True):
        size, names = named[offset]
        place["offset"], place["size"], place["wanted"] = offset, size or 2**31 - 1, globs.wants(names)
    head = np.array([(_MAGIC, len(places), not globs.select)], HEAD)
    return head.tobytes() + places.tobytes()


def functions(module: Path) -> dict[int, tuple[int, frozenset[str]]]:
    """The functions of a file by their place where it is loaded; none where it cannot be read."""
    elf = open_elf(module)
    if elf is None:
        return {}
    with elf:
        base, found = elf.base, list(elf.functions())
        apart = open_elf(apart_of(elf))
        if apart:
            with apart:
                found += apart.functions()
    named: dict[int, tuple[int, frozenset[str]]] = {}
    for one in found:
        size, names = named.get(one.address - base, NAMELESS)
        named[one.address - base] = max(size, one.size), names | names_of(one.symbol)
    return named


def apart_of(elf: Elf) -> Path:
    """Where the distribution keeps symbols of a file apart from it."""
    return DEBUG / elf.identity[:2] / f"{elf.identity[2:]}.debug"


def has_names(module: Path) -> bool:
    """Whether more of a file is named than what it exports: it was not stripped, or its symbols stand apart."""
    elf = open_elf(module)
    if elf is None:
        return False
    with elf:
        return elf.has_symbols or apart_of(elf).exists()


def names_of(symbol: str) -> frozenset[str]:
    """What a function goes by: as in the source without parameters, and with them.

    >>> sorted(names_of("_ZN3app3addEi"))
    ['app::add', 'app::add(int)']
    >>> sorted(names_of("scan.constprop.0"))
    ['scan']
    """
    whole = demangled(symbol).partition(" [clone")[0]
    if whole == symbol:
        return frozenset([symbol.split(".")[0] or symbol])
    return frozenset([whole, without_parameters(whole)])


def _any(globs: tuple[str, ...], names: Iterable[str]) -> bool:
    match = _pattern(globs).match
    return bool(globs) and any(map(match, names))


@cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))
