"""Durations by call path as objects, and as the tables that the C core exports: for the twin, and for comparing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final

from perflaw.collect.core_tables import Export
from perflaw.store.columns import Array, Column

WHOLE: Final = -1
"""In place of a node: the function, whatever the path."""
WALL, ON_CPU = 0, 1
"""Clocks."""

Level = tuple[int, int, int]
"""Complete batches of 2^k calls, ΣB, ΣB²."""


@dataclass
class Seen:
    """An observation of a function."""

    begin: int
    """Stamp of the start of its first call."""
    end: int
    """Stamp of the last end of one."""
    points: int = 0
    """Calls."""
    nested: int = 0
    """Calls of recorded functions within them."""


@dataclass
class Piece:
    """What an observation has of a path, or of the whole function, by one clock."""

    node: int
    """Of the call tree; or ``WHOLE``: then there are batches alone."""
    observation: int
    """Place among the function's."""
    clock: int
    """``WALL``; ``ON_CPU`` only where it differs."""
    scale: int
    """Of the buckets (``types.durations.Histogram``)."""
    zeros: int
    """Calls that took no time."""
    buckets: dict[int, int] = field(default_factory=dict)
    """Index → calls; indices increase."""
    levels: list[Level] = field(default_factory=list)
    """Batches of whole logarithms, one a level (``types.durations.Batches``)."""


@dataclass
class FunctionPaths:
    """Durations of a function by call path."""

    dropped: int = 0
    """Whether there was no room for them."""
    seen: list[Seen] = field(default_factory=list)
    """Its observations."""
    pieces: list[Piece] = field(default_factory=list)
    """What they have of each path."""


def path_objects(tables: Mapping[Export, Array]) -> dict[int, FunctionPaths]:
    """Number of a function → what the tables have of it; pieces in order of node, observation, clock."""
    found = {code: FunctionPaths(dropped) for code, dropped in _rows(tables[Export.PATH_CODES])}
    for code, _, *seen in _rows(tables[Export.PATH_SEEN]):
        found[code].seen.append(Seen(*seen))
    buckets, levels = _rows(tables[Export.PATH_BUCKETS]), _rows(tables[Export.PATH_BATCHES])
    for code, node, observation, clock, scale, zeros, bucket_count, level_count in _rows(tables[Export.PATH_PIECES]):
        counts = dict(islice(buckets, bucket_count))
        found[code].pieces.append(
            Piece(node, observation, clock, scale, zeros, counts, list(islice(levels, level_count)))
        )
    for one in found.values():
        one.pieces.sort(key=lambda piece: (piece.node, piece.observation, piece.clock))
    return found


def _rows(table: Array) -> Iterable[Any]:
    names = table.dtype.names or ()
    return iter(zip(*(Column(table[name]).plain() for name in names), strict=True))


def path_rows(paths: Mapping[int, FunctionPaths]) -> dict[Export, Iterable[tuple[Any, ...]]]:
    """The rows of the tables."""
    pieces = [(code, piece) for code, one in paths.items() for piece in one.pieces]
    return {
        Export.PATH_CODES: ((code, one.dropped) for code, one in paths.items()),
        Export.PATH_SEEN: (
            (code, place, *vars(seen).values()) for code, one in paths.items() for place, seen in enumerate(one.seen)
        ),
        Export.PATH_PIECES: (
            (code, *list(vars(piece).values())[:-2], len(piece.buckets), len(piece.levels)) for code, piece in pieces
        ),
        Export.PATH_BUCKETS: chain.from_iterable(piece.buckets.items() for _, piece in pieces),
        Export.PATH_BATCHES: chain.from_iterable(piece.levels for _, piece in pieces),
    }
