"""Names of locations that are unique in a matrix: files of one name are told apart by as much of their path as it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from perflaw.types import Location

_OF_FILES = ("line", "block")
"""Kinds whose names begin with that of their file."""


def told_apart(locations: Sequence[Location]) -> tuple[Location, ...]:
    """The same with names that are unique: of files of one name the path is told as far as it takes, else the line."""
    shown = _shown([location.file for location in locations])
    named = [
        replace(location, name=location.name.replace(PurePath(location.file).name, shown[location.file], 1))
        if location.kind in _OF_FILES and location.file
        else location
        for location in locations
    ]
    return tuple(_numbered(named))


def _shown(files: Iterable[str]) -> dict[str, str]:
    """File → the least of its last parts that no other file ends with.

    >>> _shown(["/a/x.c", "/b/x.c", "/b/y.c"])
    {'/a/x.c': 'a/x.c', '/b/x.c': 'b/x.c', '/b/y.c': 'y.c'}
    """
    shown: dict[str, str] = {}
    waiting, length = sorted(set(files)), 1
    while waiting:
        ends: dict[str, list[str]] = {}
        for file in waiting:
            ends.setdefault("/".join(PurePath(file).parts[-length:]), []).append(file)
        alone = {
            those[0]: end for end, those in ends.items() if len(those) == 1 or length > len(PurePath(those[0]).parts)
        }
        shown.update(alone)
        waiting = [file for file in waiting if file not in alone]
        length += 1
    return dict(sorted(shown.items()))


def _numbered(locations: Iterable[Location]) -> Iterator[Location]:
    """Names that still clash (functions of one name, blocks of a line) are told apart by file and line, then by number."""
    seen: dict[str, int] = {}
    for location in locations:
        name = location.name
        if name in seen and location.kind not in _OF_FILES:
            name = f"{name} ({location.file}:{location.line})"
        seen[name] = seen.get(name, 0) + 1
        yield replace(location, name=name if seen[name] == 1 else f"{name} #{seen[name]}")
