"""How often lines were executed: the counters that the native tracer kept in the spool, by source file and line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

import numpy as np

from perflaw.collect.definitions import CountedCode, Definitions
from perflaw.types import Component, Counts, Location

_OUTCOMES: Final = ("not taken", "taken")
_NO_FILE: Final = np.zeros(0, dtype=np.uint64)
Place = tuple[str, int, str]
"""Source file, line, and which block of the line: empty for the line itself."""
Owners = dict[Place, Component]
"""The outermost function that has code at a place."""


@dataclass(slots=True)
class LineCounts:
    """What one process counted. Code objects that share a line (a lambda, a class) are added up."""

    counts: Counter[Place] = field(default_factory=Counter)
    """Executions, those of lines that never ran among them."""
    owners: Owners = field(default_factory=dict)
    """Which function each of them is told to lie in."""

    def add(self, code: CountedCode, component: Component, counters: Sequence[int]) -> None:
        """Take in the counters of one code object, in their order."""
        for line in code.lines:
            self._add(component, code.first + line, "", counters[line])
        for branch, line, rank in code.blocks:
            for taken, outcome in enumerate(_OUTCOMES):
                block = f"{f'_{rank}' * (rank > 1)} {outcome}"
                self._add(component, line, block, counters[code.span + 2 * branch + taken])

    def _add(self, component: Component, line: int, block: str, count: int) -> None:
        place = (component.file, line, block)
        self.counts[place] += count
        known = self.owners.setdefault(place, component)
        if (component.line, component.name.count(".")) < (known.line, known.name.count(".")):
            self.owners[place] = component

    def table(self, owners: Owners) -> Counts:
        """The same as it is kept. ``owners``: what an earlier process of the run said, which holds here too; it grows."""
        places = sorted(self.counts, key=lambda place: (place[0], place[1], place[2] != "", place[2]))
        for place in places:
            owners.setdefault(place, self.owners[place])
        locations = tuple(_location(place, owners[place]) for place in places)
        return Counts(locations, np.array([self.counts[place] for place in places], dtype=np.int64))

    def sources(self) -> dict[str, str]:
        """Text of each source file that can be read now; code made by ``exec`` has none."""
        return dict(_texts({file for file, _, _ in self.counts}))


def _location(place: Place, owner: Component) -> Location:
    file, line, block = place
    name = f"{PurePath(file).name or file}:{line}{block}"
    return Location("block" if block else "line", name, file, line, owner.name, owner.language)


def _texts(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    for file in sorted(files):
        with suppress(OSError, ValueError):  # it was never a file, or is gone
            yield file, Path(file).read_bytes().decode(errors="replace")


def read_line_counts(folder: Path, known: Definitions) -> LineCounts | None:
    """What the process of ``folder`` has counted; its files of counters are then removed. None where it counts nothing."""
    if not known.counted:
        return None
    counts, files = LineCounts(), {}
    for number in {code.file for code in known.counted}:
        with suppress(OSError):  # the program removed it
            path = folder / f"{number}.counts"
            files[number] = np.fromfile(path, dtype=np.uint64)
            path.unlink()
    for code in known.counted:
        end = code.place + code.span + 2 * (1 + max((branch for branch, _, _ in code.blocks), default=-1))
        counters = files.get(code.file, _NO_FILE)[code.place : end].tolist()
        if code.component in known.components and len(counters) == end - code.place:  # whole, in spite of the program
            counts.add(code, known.components[code.component], counters)
    return counts
