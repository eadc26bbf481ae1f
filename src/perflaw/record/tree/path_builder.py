"""Durations by call path, in observations that are closed by count and time: the readable twin of native/core/paths/paths.c.

An observation is closed when it has ``FEWEST`` calls, because nothing is reliably found below that number, and has lasted
``SHORTEST_NS``, so that a function called a million times a second does not have a thousand observations. Beyond
``MOST_OBSERVATIONS`` of a function, neighbours are put together and both bounds double. A remainder too small for an
observation joins the last one (Brünink & Rosenblum, FSE'16, §3.2; OpenTelemetry, "ExponentialHistogram").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from perflaw.record.tree.core import Export
from perflaw.types.specifications import LEVELS, MOST_BUCKETS, MOST_SCALE, UNIT

WHOLE: Final = -1
"""In place of a node: the function, whatever the path."""
WALL, ON_CPU = 0, 1
"""Clocks."""
FEWEST: Final = 1000
SHORTEST_NS: Final = 10**9 // 64
MOST_OBSERVATIONS: Final = 64
MOST_PIECES: Final = 1 << 16
"""Closed pieces of all functions; beyond it the function of least own time is dropped. The C core counts bytes instead."""
BatchSums = tuple[int, int, int]
"""Number of complete batches of 2^k calls, ΣB, ΣB²."""


@dataclass
class PathObservation:
    """An observation of a function: the period in which its durations were collected together."""

    begin: int
    """Stamp of the start of its first call."""
    end: int
    """Latest stamp of the end of a call."""
    points: int = 0
    """Number of calls."""
    nested: int = 0
    """Number of calls within them that cost the tracer's time: of recorded functions, and of others whose hooks are called."""


@dataclass
class PathPiece:
    """Durations of one path, or of the whole function, in one observation by one clock."""

    node: int
    """Number of a node of the call tree; or ``WHOLE``, which has batches only."""
    observation: int
    """Index among the function's observations."""
    clock: int
    """``WALL``; ``ON_CPU`` only where it differs."""
    scale: int
    """Scale of the buckets (see ``types.specifications.Histogram``)."""
    zeros: int
    """Calls that took no time."""
    buckets: dict[int, int] = field(default_factory=dict)
    """Index → number of calls; indices increase."""
    levels: list[BatchSums] = field(default_factory=list)
    """Batches of whole logarithms by level (see ``types.specifications.Batches``)."""


@dataclass
class FunctionPaths:
    """Durations of a function by call path."""

    dropped: int = 0
    """1 if there was no room for them, else 0."""
    seen: list[PathObservation] = field(default_factory=list)
    """Its observations."""
    pieces: list[PathPiece] = field(default_factory=list)
    """Durations of each path in each observation."""


def path_rows(paths: Mapping[int, FunctionPaths]) -> dict[Export, Iterable[tuple[Any, ...]]]:
    """The rows of the tables of all functions."""
    pieces = [(code, piece) for code, function in paths.items() for piece in function.pieces]
    return {
        Export.PATH_CODES: ((code, function.dropped) for code, function in paths.items()),
        Export.PATH_SEEN: (
            (code, place, *vars(seen).values())
            for code, function in paths.items()
            for place, seen in enumerate(function.seen)
        ),
        Export.PATH_PIECES: (
            (code, *list(vars(piece).values())[:-2], len(piece.buckets), len(piece.levels)) for code, piece in pieces
        ),
        Export.PATH_BUCKETS: chain.from_iterable(piece.buckets.items() for _, piece in pieces),
        Export.PATH_BATCHES: chain.from_iterable(piece.levels for _, piece in pieces),
    }


def whole_log(x: int) -> int:
    """⌊UNIT·log2 x⌋ of a duration, exactly; 0 for a duration of 0.

    >>> whole_log(2**20), whole_log(3), whole_log(0)
    (20480, 1623, 0)
    """
    if x <= 0:
        return 0
    near = UNIT * math.log2(x)
    if abs(near - round(near)) > 1e-6:
        return math.floor(near)
    return int(x**UNIT).bit_length() - 1  # a floating-point number cannot tell which side the logarithm is on


class DurationSums:
    """Histogram and batches of the durations of one path by one clock."""

    def __init__(self) -> None:
        self.zeros = 0
        self.buckets: Counter[int] = Counter()
        """Index at the finest scale → number of calls."""
        self.n = self.sum = 0
        self.squares = [0] * LEVELS
        self.rests = [0] * LEVELS
        """By level: sum of the batch that waits for the second half of a batch of the next level."""

    def add(self, x: int) -> None:
        """Add a duration, ns."""
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

    def levels(self) -> list[BatchSums]:
        """Sums of the complete batches of each level that has one."""
        sums, total = [], self.sum
        for level in range(min(self.n.bit_length(), LEVELS)):
            sums.append((self.n >> level, total, self.squares[level]))
            if self.n >> level & 1:
                total -= self.rests[level]
        return sums


def narrowed(buckets: Mapping[int, int], scale: int) -> tuple[int, dict[int, int]]:
    """The finest scale with at most MOST_BUCKETS buckets, and the buckets at that scale in order of their indices."""
    steps = 0
    low, high = min(buckets, default=0), max(buckets, default=0)
    while (high >> steps) - (low >> steps) >= MOST_BUCKETS:
        steps += 1
    counts: Counter[int] = Counter()
    for index in sorted(buckets):
        counts[index >> steps] += buckets[index]
    return scale - steps, dict(counts)


def merged(a: PathPiece, b: PathPiece) -> PathPiece:
    """The sum of two pieces of one path and clock."""
    scale = min(a.scale, b.scale)
    buckets: Counter[int] = Counter()
    for piece in (a, b):
        for index, count in piece.buckets.items():
            buckets[index >> (piece.scale - scale)] += count
    scale, counts = narrowed(buckets, scale)
    more, fewer = sorted((a.levels, b.levels), key=len, reverse=True)
    padded = fewer + [(0, 0, 0)] * (len(more) - len(fewer))
    levels = [(m[0] + f[0], m[1] + f[1], m[2] + f[2]) for m, f in zip(more, padded, strict=True)]
    return PathPiece(a.node, a.observation, a.clock, scale, a.zeros + b.zeros, counts, levels)


class PathDurations:
    """Durations of one path, or of all paths of a function: of the open observation and of the closed ones."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.wall, self.cpu = DurationSums(), DurationSums()
        self.apart = False
        """Whether a call of the open observation was off the CPU."""
        self.closed: dict[int, list[PathPiece]] = {}
        """Observation → piece by wall clock, and piece by CPU time where that differs."""

    def close(self, observation: int) -> None:
        """Close the open observation of this path if it has a call."""
        if self.wall.n:
            clocks = ((WALL, self.wall), (ON_CPU, self.cpu))[: 1 + self.apart]
            self.closed[observation] = [self._piece(observation, *clock) for clock in clocks]
        self.wall, self.cpu, self.apart = DurationSums(), DurationSums(), False

    def _piece(self, observation: int, clock: int, sums: DurationSums) -> PathPiece:
        if self.node == WHOLE:
            return PathPiece(WHOLE, observation, clock, MOST_SCALE, 0, levels=sums.levels())
        scale, counts = narrowed(sums.buckets, MOST_SCALE)
        return PathPiece(self.node, observation, clock, scale, sums.zeros, counts, sums.levels())

    def merge(self, to: Callable[[int], int]) -> None:
        """Move observations to the indices that ``to`` gives, and add those of the same index."""
        before, self.closed = self.closed, {}
        for observation, pieces in before.items():
            place = to(observation)
            known = self.closed.get(place)
            if known:
                count = max(len(known), len(pieces))  # a missing CPU clock is equal to the wall clock
                pieces = [
                    merged(known[min(at, len(known) - 1)], pieces[min(at, len(pieces) - 1)]) for at in range(count)
                ]
            for clock, piece in enumerate(pieces):
                piece.observation, piece.clock = place, clock
            self.closed[place] = pieces


class FunctionDurations:
    """Durations of a function by call path, while they are collected."""

    def __init__(self) -> None:
        self.paths = {WHOLE: PathDurations(WHOLE)}
        self.open: PathObservation | None = None
        self.seen: list[PathObservation] = []
        self.doubled = 0

    def is_whole(self, seen: PathObservation) -> bool:
        """Whether an observation has enough calls and lasted long enough."""
        lasted = seen.end - seen.begin
        return seen.points >> self.doubled >= FEWEST and lasted >> self.doubled >= SHORTEST_NS

    def close(self, seen: PathObservation) -> None:
        """Close the open observation."""
        if len(self.seen) == MOST_OBSERVATIONS:
            self.merge(lambda place: place // 2)
            self.doubled += 1
        for path in self.paths.values():
            path.close(len(self.seen))
        self.seen.append(seen)
        self.open = None

    def merge(self, to: Callable[[int], int]) -> None:
        """Move observations as :meth:`PathDurations.merge` does."""
        for path in self.paths.values():
            path.merge(to)
        kept: dict[int, PathObservation] = {}
        for place, seen in enumerate(self.seen):
            first = kept.setdefault(to(place), seen)
            if first is not seen:
                first.end = seen.end
                first.points += seen.points
                first.nested += seen.nested
        self.seen = list(kept.values())

    def finish(self) -> FunctionPaths:
        """All durations; the open observation is closed, or joins the last one if it is too small."""
        if self.open:
            small = not self.is_whole(self.open)
            self.close(self.open)
            last = len(self.seen) - 1
            if small and last:
                self.merge(lambda place: min(place, last - 1))
        pieces = [piece for path in self.paths.values() for pieces in path.closed.values() for piece in pieces]
        return FunctionPaths(0, self.seen, sorted(pieces, key=lambda one: (one.node, one.observation, one.clock)))


class PathBuilder:
    """Collects the durations of completed invocations of all functions by call path."""

    def __init__(self, with_cpu: bool, selves: Mapping[int, list[int]]) -> None:
        self.with_cpu, self.selves = with_cpu, selves
        self.of: dict[int, FunctionDurations] = {}
        self.dropped: set[int] = set()

    def add(self, code: int, node: int, begin: int, end: int, nested: int, x: int, off_cpu: int) -> None:
        """Add an invocation: its stamps, calls within that cost the tracer's time, duration and time off the CPU; in ns."""
        if code in self.dropped:
            return
        function = self.of.setdefault(code, FunctionDurations())
        if function.open is None:
            function.open = PathObservation(begin, end)
        function.open.points += 1
        function.open.nested += nested
        function.open.end = max(function.open.end, end)
        for number in (node, WHOLE):
            path = function.paths.get(number) or function.paths.setdefault(number, PathDurations(number))
            path.apart |= self.with_cpu and off_cpu != 0
            path.wall.add(x)
            path.cpu.add(x - off_cpu)
        if function.is_whole(function.open):
            function.close(function.open)
            while sum(len(path.closed) for each in self.of.values() for path in each.paths.values()) > MOST_PIECES:
                lightest = min(self.of, key=lambda code: self.selves.get(code, [0])[0])
                del self.of[lightest]
                self.dropped.add(lightest)

    def finish(self) -> dict[int, FunctionPaths]:
        """Function → its durations by call path; nothing can be added afterwards."""
        paths = {code: function.finish() for code, function in self.of.items()}
        return dict(sorted((paths | {code: FunctionPaths(1) for code in self.dropped}).items()))
