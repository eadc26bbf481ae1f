"""Durations by call path, in observations that are closed by count and time: the readable twin of native/paths.c.

An observation is closed when it has ``FEWEST`` calls, for below that nothing is reliably found, and lasted
``SHORTEST_NS``, so that a function called a million times a second does not have a thousand of them. Beyond
``MOST_OBSERVATIONS`` of a function, neighbours are put together and both bounds double. A remainder too small to be one
joins the last (Brünink & Rosenblum, FSE'16, §3.2; OpenTelemetry, "ExponentialHistogram").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final

from perflaw.record.tree.core_tables import Export
from perflaw.store.columns import Array, Column
from perflaw.types.specifications import LEVELS, MOST_BUCKETS, MOST_SCALE, UNIT

# ---- Durations by call path as objects, and as the tables that the C core exports: for the twin, and for comparing.

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


FEWEST: Final = 1000
SHORTEST_NS: Final = 10**9 // 64
MOST_OBSERVATIONS: Final = 64
MOST_PIECES: Final = 1 << 16
"""Closed pieces of all functions; beyond it the function of least time of its own is dropped. The C core counts bytes."""


def whole_log(x: int) -> int:
    """⌊UNIT·log2 x⌋ of a duration, exactly; 0 for none.

    >>> whole_log(2**20), whole_log(3), whole_log(0)
    (20480, 1623, 0)
    """
    if x <= 0:
        return 0
    near = UNIT * math.log2(x)
    if abs(near - round(near)) > 1e-6:
        return math.floor(near)
    return int(x**UNIT).bit_length() - 1  # the floating point number does not tell on which side it is


class Measured:
    """Durations of one path by one clock."""

    def __init__(self) -> None:
        self.zeros = 0
        self.buckets: Counter[int] = Counter()
        """By index at the finest scale."""
        self.n = self.sum = 0
        self.squares = [0] * LEVELS
        self.rests = [0] * LEVELS
        """Sum of the batch of each level that waits for the other half of a batch of the next."""

    def add(self, x: int) -> None:
        """Take in a duration, ns."""
        log = whole_log(x)
        if x > 0:
            self.buckets[log - (x & (x - 1) == 0)] += 1
        else:
            self.zeros += 1
        carried = log
        for level in range(LEVELS):
            self.squares[level] += carried * carried
            if not self.n >> level & 1:
                self.rests[level] = carried
                break
            carried += self.rests[level]
        self.n += 1
        self.sum += log

    def levels(self) -> list[Level]:
        """Complete batches of each level that has one."""
        found, total = [], self.sum
        for level in range(min(self.n.bit_length(), LEVELS)):
            found.append((self.n >> level, total, self.squares[level]))
            if self.n >> level & 1:
                total -= self.rests[level]
        return found


def narrowed(buckets: Mapping[int, int], scale: int) -> tuple[int, dict[int, int]]:
    """The finest scale at which buckets are few enough, and the buckets then, in order of their indices."""
    steps = 0
    low, high = min(buckets, default=0), max(buckets, default=0)
    while (high >> steps) - (low >> steps) >= MOST_BUCKETS:
        steps += 1
    counts: Counter[int] = Counter()
    for index in sorted(buckets):
        counts[index >> steps] += buckets[index]
    return scale - steps, dict(counts)


def merged(a: Piece, b: Piece) -> Piece:
    """Two pieces of one path and clock as one."""
    scale = min(a.scale, b.scale)
    buckets: Counter[int] = Counter()
    for piece in (a, b):
        for index, count in piece.buckets.items():
            buckets[index >> (piece.scale - scale)] += count
    scale, counts = narrowed(buckets, scale)
    more, fewer = sorted((a.levels, b.levels), key=len, reverse=True)
    padded = fewer + [(0, 0, 0)] * (len(more) - len(fewer))
    levels = [(m[0] + f[0], m[1] + f[1], m[2] + f[2]) for m, f in zip(more, padded, strict=True)]
    return Piece(a.node, a.observation, a.clock, scale, a.zeros + b.zeros, counts, levels)


class Path:
    """A path, or all paths of a function: what is being measured, and what was."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.wall, self.cpu = Measured(), Measured()
        self.apart = False
        """Whether a call of the observation that is open was off the CPU."""
        self.closed: dict[int, list[Piece]] = {}
        """Observation → by wall clock, and by CPU time where that differs."""

    def close(self, observation: int) -> None:
        """End an observation, if there was a call."""
        if self.wall.n:
            clocks = ((WALL, self.wall), (ON_CPU, self.cpu))[: 1 + self.apart]
            self.closed[observation] = [self._piece(observation, *one) for one in clocks]
        self.wall, self.cpu, self.apart = Measured(), Measured(), False

    def _piece(self, observation: int, clock: int, measured: Measured) -> Piece:
        if self.node == WHOLE:
            return Piece(WHOLE, observation, clock, MOST_SCALE, 0, levels=measured.levels())
        scale, counts = narrowed(measured.buckets, MOST_SCALE)
        return Piece(self.node, observation, clock, scale, measured.zeros, counts, measured.levels())

    def merge(self, to: Callable[[int], int]) -> None:
        """Give observations other places, and put those of the same place together."""
        before, self.closed = self.closed, {}
        for observation, pieces in before.items():
            place = to(observation)
            found = self.closed.get(place)
            if found:
                count = max(len(found), len(pieces))  # a clock that one lacks is equal to the wall's there
                pieces = [
                    merged(found[min(at, len(found) - 1)], pieces[min(at, len(pieces) - 1)]) for at in range(count)
                ]
            for clock, piece in enumerate(pieces):
                piece.observation, piece.clock = place, clock
            self.closed[place] = pieces


class Function:
    """Durations of a function by call path."""

    def __init__(self) -> None:
        self.paths = {WHOLE: Path(WHOLE)}
        self.open: Seen | None = None
        self.seen: list[Seen] = []
        self.doubled = 0

    def whole(self, seen: Seen) -> bool:
        """Whether an observation has enough calls and lasted long enough."""
        lasted = seen.end - seen.begin
        return seen.points >> self.doubled >= FEWEST and lasted >> self.doubled >= SHORTEST_NS

    def close(self, seen: Seen) -> None:
        """End the open observation."""
        if len(self.seen) == MOST_OBSERVATIONS:
            self.merge(lambda place: place // 2)
            self.doubled += 1
        for path in self.paths.values():
            path.close(len(self.seen))
        self.seen.append(seen)
        self.open = None

    def merge(self, to: Callable[[int], int]) -> None:
        """See :meth:`Path.merge`."""
        for path in self.paths.values():
            path.merge(to)
        kept: dict[int, Seen] = {}
        for place, seen in enumerate(self.seen):
            one = kept.setdefault(to(place), seen)
            if one is not seen:
                one.end, one.points, one.nested = seen.end, one.points + seen.points, one.nested + seen.nested
        self.seen = list(kept.values())

    def finished(self) -> FunctionPaths:
        """All of it; what is open is closed."""
        if self.open:
            small = not self.whole(self.open)
            self.close(self.open)
            last = len(self.seen) - 1
            if small and last:
                self.merge(lambda place: min(place, last - 1))
        pieces = [piece for path in self.paths.values() for some in path.closed.values() for piece in some]
        return FunctionPaths(0, self.seen, sorted(pieces, key=lambda one: (one.node, one.observation, one.clock)))


class PathBuilder:
    """Takes in completed invocations."""

    def __init__(self, with_cpu: bool, selves: Mapping[int, list[int]]) -> None:
        self.with_cpu, self.selves = with_cpu, selves
        self.of: dict[int, Function] = {}
        self.dropped: set[int] = set()

    def add(self, code: int, node: int, seen: Seen, x: int, off_cpu: int) -> None:
        """Take in an invocation: when it was, its duration, and how long it was off the CPU."""
        if code in self.dropped:
            return
        function = self.of.setdefault(code, Function())
        if function.open is None:
            function.open = Seen(seen.begin, seen.end)
        _extend(function.open, seen)
        for number in (node, WHOLE):
            path = function.paths.get(number) or function.paths.setdefault(number, Path(number))
            path.apart |= self.with_cpu and off_cpu != 0
            path.wall.add(x)
            path.cpu.add(x - off_cpu)
        if function.whole(function.open):
            function.close(function.open)
            self._bound()

    def _bound(self) -> None:
        while sum(len(path.closed) for one in self.of.values() for path in one.paths.values()) > MOST_PIECES:
            lightest = min(self.of, key=lambda code: self.selves.get(code, [0])[0])
            del self.of[lightest]
            self.dropped.add(lightest)

    def finish(self) -> dict[int, FunctionPaths]:
        """Function → its durations by call path; nothing can be added from now on."""
        found = {code: one.finished() for code, one in self.of.items()} | {
            code: FunctionPaths(1) for code in self.dropped
        }
        return dict(sorted(found.items()))


def _extend(open_: Seen, seen: Seen) -> None:
    open_.points += seen.points
    open_.nested += seen.nested
    open_.end = max(open_.end, seen.end)
