"""How often lines were executed: the counters that the native tracer kept in the spool, by source file and line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

import numpy as np

from perflaw.record.tree.records import CountedCode, Definitions
from perflaw.types import Component, Counts, Location

_OUTCOMES: Final = ("not taken", "taken")
SourcePlace = tuple[str, int, str]
"""Source file, line, and block of the line; empty for the line itself."""
LineOwners = dict[SourcePlace, Component]
"""The outermost function that has code at a place."""


@dataclass(slots=True)
class LineCounts:
    """Executions counted in one process. Code objects that share a line (a lambda, a class) are added up."""

    counts: Counter[SourcePlace] = field(default_factory=Counter)
    """Executions by place; 0 for lines that never ran."""
    owners: LineOwners = field(default_factory=dict)
    """The function that each place is attributed to."""

    def add(self, code: CountedCode, component: Component, counters: Sequence[int]) -> None:
        """Add the counters of one code object, in their order."""
        counts = [(code.first + line, "", counters[line]) for line in code.lines]
        for branch, line, rank in code.blocks:
            for taken, outcome in enumerate(_OUTCOMES):
                block = f"{f'_{rank}' * (rank > 1)} {outcome}"
                counts.append((line, block, counters[code.span + 2 * branch + taken]))
        for line, block, count in counts:
            place = (component.file, line, block)
            self.counts[place] += count
            known = self.owners.setdefault(place, component)
            if (component.line, component.name.count(".")) < (known.line, known.name.count(".")):
                self.owners[place] = component

    def table(self, owners: LineOwners) -> Counts:
        """The counts in order of file and line. ``owners`` of earlier processes of the run take precedence; they grow."""
        places = sorted(self.counts, key=lambda place: (place[0], place[1], place[2] != "", place[2]))
        locations = []
        for file, line, block in places:
            owner = owners.setdefault((file, line, block), self.owners[file, line, block])
            name = f"{PurePath(file).name or file}:{line}{block}"
            kind = "block" if block else "line"
            locations.append(Location(kind, name, file, line, owner.name, owner.language))
        return Counts(tuple(locations), np.array([self.counts[place] for place in places], dtype=np.int64))

    def sources(self) -> dict[str, str]:
        """Source file → text, of the files that can be read now; code made by ``exec`` has none."""
        texts = {}
        for file in sorted({file for file, _, _ in self.counts}):
            with suppress(OSError, ValueError):  # it was never a file, or is gone
                texts[file] = Path(file).read_bytes().decode(errors="replace")
        return texts


def read_line_counts(folder: Path, known: Definitions) -> LineCounts | None:
    """The counts of the process of ``folder``, whose counter files are then removed; None if it counts no lines."""
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
        counters = files[code.file][code.place : end].tolist() if code.file in files else []
        if code.component in known.components and len(counters) == end - code.place:  # the program did not damage it
            counts.add(code, known.components[code.component], counters)
    return counts
