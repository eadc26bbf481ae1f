"""Which functions of a compiled program are recorded, for ``--select`` and ``--exclude``.

The hooks know addresses; the recorder knows names. So when the recorded program first meets code of a file, it asks which
functions of it are chosen (``questions.py``; the layout of the answer is that of ``native/compiled/selection.c``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.record.compiled.dwarf import demangled, without_parameters
from perflaw.record.compiled.elf import SizeAndNames, open_elf

_MAGIC: Final = int.from_bytes(b"FPRFSEL1", "little")
HEAD: Final = np.dtype([("magic", "<u8"), ("count", "<u8"), ("others", "<u4"), ("apart", "<u4")])
PLACE: Final = np.dtype([("offset", "<u8"), ("size", "<u4"), ("wanted", "<u4")])
"""An answer is a head, then a place for each named function."""
NAMELESS: Final[SizeAndNames] = (0, frozenset())
"""A function that no symbol names."""


@dataclass(frozen=True, slots=True)
class Globs:
    """The functions that the person chose; falsy if that is all of them."""

    select: tuple[str, ...] = ()
    """Globs of the only functions to record; empty: all."""
    exclude: tuple[str, ...] = ()
    """Globs of functions never to record."""

    per: str = ""
    """The function of which each call is an observation, or its end after ``::``; empty: none. It is recorded in any case."""

    def __bool__(self) -> bool:
        return bool(self.select or self.exclude or self.per)

    def wants(self, names: Iterable[str]) -> bool:
        """Whether a function that has these names is recorded."""
        return bool(self.wanted_of({0: (0, frozenset(names))}))

    def wanted_of(self, named: Mapping[int, SizeAndNames]) -> set[int]:
        """The functions that are recorded of a file's, which may be many: offset of each → its size and names."""
        selects, excludes = _pattern(self.select).match, _pattern(self.exclude).match
        return {
            offset
            for offset, (_, names) in named.items()
            if ((not self.select or any(map(selects, names))) and not any(map(excludes, names))) or self.observes(names)
        }

    def observes(self, names: Iterable[str]) -> bool:
        """Whether each call of a function that has these names is an observation."""
        return bool(self.per) and any(name == self.per or name.endswith("::" + self.per) for name in names)


@cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern that matches what any of the globs matches, so nothing if there are none."""
    return re.compile("|".join(map(translate, globs)) or "(?!)")


EVERYTHING: Final = Globs()
"""No glob: all functions are recorded."""


def chosen(
    named: Mapping[int, SizeAndNames],
    globs: Globs,
    inlined: Callable[[Mapping[int, SizeAndNames]], bool] = lambda _: True,
) -> bytes:
    """The answer for a file whose functions are named by offset. Functions without a name match no glob.

    ``inlined``: whether functions may have been inlined into others.
    """
    places = np.zeros(len(named), PLACE)
    places["offset"] = sorted(named)
    places["size"] = [named[offset][0] or 2**31 - 1 for offset in places["offset"].tolist()]
    wanted = {offset: named[offset] for offset in globs.wanted_of(named)}
    observed = [offset for offset, (_, names) in wanted.items() if globs.observes(names)]
    for offsets in (list(wanted), observed):
        places["wanted"] += np.isin(places["offset"], np.array(offsets, np.uint64))
    apart = bool(globs.select) and not inlined(wanted)
    head = np.array([(_MAGIC, len(places), not globs.select, apart)], HEAD)
    return head.tobytes() + places.tobytes()


def functions(module: Path) -> Mapping[int, SizeAndNames]:
    """The functions of a file by their offset where it is loaded; empty if it cannot be read."""
    try:
        about = module.stat()
    except OSError:
        return {}
    return _functions(module, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=64)
def _functions(module: Path, size: int, time: int) -> Mapping[int, SizeAndNames]:
    with open_elf(module) as elf:
        if elf is None:
            return {}
        base, symbols = elf.base, list(elf.functions())
        with open_elf(elf.debug_file) as debug:
            symbols += debug.functions() if debug else []
    named: dict[int, SizeAndNames] = {}
    for symbol in symbols:
        size, names = named.get(symbol.address - base, NAMELESS)
        named[symbol.address - base] = max(size, symbol.size), names | names_of(symbol.symbol)
    return named


def has_names(module: Path) -> bool:
    """Whether a file names more than what it exports: it was not stripped, or its symbols are kept apart."""
    with open_elf(module) as elf:
        return elf is not None and (elf.has_symbols or elf.debug_file.exists())


def names_of(symbol: str) -> frozenset[str]:
    """Names of a function: as in the source without parameters, and with them.

    >>> sorted(names_of("_ZN3app3addEi"))
    ['app::add', 'app::add(int)']
    >>> sorted(names_of("scan.constprop.0"))
    ['scan']
    """
    whole = demangled(symbol).partition(" [clone")[0]
    if whole == symbol:
        return frozenset([symbol.split(".")[0] or symbol])
    return frozenset([whole, without_parameters(whole)])
