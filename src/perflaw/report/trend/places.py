"""Where locations are, as a person reads it: ``sort.py:12-15, 18 in bubble()``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from perflaw.types import Location

_ANONYMOUS = re.compile(r"(<\w+>):\d+$")
MODULE = "<module>"
"""Name of a Python module's own code."""


@dataclass(frozen=True, slots=True)
class Places:
    """All locations of a program. A range of lines may hold comments and blank lines, but no other location."""

    locations: Sequence[Location]
    """All locations, those in no cluster included."""
    known: Mapping[str, tuple[int, ...]]
    """File → its lines that are locations, increasing."""

    def texts(self, members: Iterable[int], weights: Sequence[float]) -> list[str]:
        """A text for each function of these locations (indices), the function of the largest weight (by index) first.

        >>> one, two, four = (Location("line", f"a.py:{i}", "a.py", i, "a.f") for i in (1, 2, 4))
        >>> places_of([one, two, four]).texts([0, 1, 2], [5, 5, 1])
        ['a.py:1-4 in f()']
        >>> places_of([one, two, four]).texts([0, 2], [5, 5, 1])
        ['a.py:1, 4 in f()']
        """
        groups: dict[tuple[str, str], list[Location]] = defaultdict(list)
        weight: dict[tuple[str, str], float] = defaultdict(float)
        for member in sorted(members, key=lambda member: -weights[member]):
            location = self.locations[member]
            key = (location.file, location.function) if _lined(location) else _BY_NAME
            groups[key].append(location)
            weight[key] += weights[member]
        ordered = sorted(groups, key=lambda key: (-weight[key], key))
        texts: list[str] = []
        for key in ordered:
            texts += map(named, groups[key]) if key == _BY_NAME else [self._lines(key[0], groups[key])]
        return texts

    def _lines(self, file: str, group: Sequence[Location]) -> str:
        whole = {location.line for location in group if location.kind == "line"}
        blocks = sorted({(one.line, outcome(one)) for one in group if one.line not in whole})
        # No other location lies between the two ends of a range.
        known = self.known[file]
        ranges: list[list[int]] = []
        for line in sorted(whole):
            if ranges and bisect_right(known, ranges[-1][1]) == bisect_right(known, line) - 1:
                ranges[-1][1] = line
            else:
                ranges.append([line, line])
        texts = [
            *[f"{low}" if low == high else f"{low}-{high}" for low, high in ranges],
            *(f"{line}{way}" for line, way in blocks),
        ]
        where = within(group[0])
        return f"{shown_file(group[0])}:{', '.join(texts)}{f' {where}' if where else ''}"


_BY_NAME = ("", "")
"""Key of locations without a line of their own: functions, edges, columns."""


def _lined(location: Location) -> bool:
    return location.kind in ("line", "block") and location.line > 0 and bool(location.file)


def places_of(locations: Sequence[Location]) -> Places:
    """The places of a program's locations."""
    known: dict[str, set[int]] = defaultdict(set)
    for location in locations:
        if _lined(location):
            known[location.file].add(location.line)
    return Places(locations, {file: tuple(sorted(lines)) for file, lines in known.items()})


def shown_file(location: Location) -> str:
    """The file as the location's name has it: the shortest name that is unique.

    >>> shown_file(Location("block", "lib/a.py:12 taken", "/home/me/lib/a.py", 12))
    'lib/a.py'
    """
    head, _, _ = location.name.rpartition(f":{location.line}")
    return head or PurePath(location.file).name


def outcome(location: Location) -> str:
    """A block's name after its line: `` taken``, ``_2 not taken``; empty for the line itself."""
    return location.name.rpartition(f":{location.line}")[2]


def within(location: Location) -> str:
    """The function that a location lies in: ``in bubble()``, without the module, which the file names already.

    >>> within(Location("line", "a.py:1", "/x/a.py", 1, "pkg.a.Class.f"))
    'in Class.f()'
    >>> within(Location("line", "a.py:7", "/x/a.py", 7, "a.f.<locals>.<listcomp>:7", "python"))
    'in f.<listcomp>'
    """
    name = location.function
    if not name:
        return ""
    if location.language in ("", "python"):
        _, found, tail = f".{name}".rpartition(f".{PurePath(location.file).stem}.")
        name = tail if found else name
        if name == MODULE or name.endswith(f".{MODULE}"):
            return "at module level"
        name = _ANONYMOUS.sub(r"\1", name.replace(".<locals>", ""))
    return f"in {name}" if name.endswith((")", ">")) else f"in {name}()"


def named(location: Location) -> str:
    """Name of a function, an edge or a column, with the place of the function.

    >>> named(Location("edge", "a.f -> a.g", "/x/a.py", 3)), named(Location("column", "swaps"))
    ('a.f -> a.g (a.py:3)', 'swaps')
    """
    place = f" ({PurePath(location.file).name}:{location.line})" if location.file and location.line else ""
    return location.name if place and place[2:-1] in location.name else f"{location.name}{place}"
