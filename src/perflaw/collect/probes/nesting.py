"""Records of one thread made a tree: a span of LAT or TPT is an invocation, what lies in it is below it.

A record is written when its span ends, so callees come before callers, and times alone say what lies in what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.collect.probes import layout
from perflaw.collect.probes.decoding import Decoded

NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class Spans:
    """Executions of the code between two probes."""

    probe: NDArray[Any]
    """(n,) ids of the probes."""
    begin: NDArray[np.int64]
    """(n,) ticks."""
    end: NDArray[np.int64]
    """(n,) ticks."""

    def __len__(self) -> int:
        return len(self.probe)

    def take(self, rows: NDArray[Any]) -> Spans:
        """These alone."""
        return Spans(self.probe[rows], self.begin[rows], self.end[rows])


@dataclass(frozen=True, slots=True)
class Shots:
    """Values that the program told by SNAPSHOT, in order."""

    probe: NDArray[Any]
    """(m,) ids of the probes."""
    at: NDArray[np.int64]
    """(m,) ticks."""
    count: NDArray[Any]
    """(m,) fields of each."""
    values: NDArray[Any]
    """(m, 6) their values."""

    def __len__(self) -> int:
        return len(self.probe)

    def take(self, rows: NDArray[Any]) -> Shots:
        """These alone."""
        return Shots(self.probe[rows], self.at[rows], self.count[rows], self.values[rows])


def spans_of(records: Decoded) -> Spans:
    """Spans among the records of one thread. A TPT record of several executions has no span of its own: see :func:`lumps`."""
    latencies, single = records.type == layout.LAT, _throughput(records) & (records.fields[:, 0] == 1)
    return _ending(records, np.flatnonzero(latencies | single))


def lumps(records: Decoded) -> Spans:
    """TPT records of several executions, each as one span of their time together; they may overlap, so nothing is in them."""
    return _ending(records, np.flatnonzero(_throughput(records) & (records.fields[:, 0] > 1)))


def shots_of(records: Decoded) -> Shots:
    """Snapshots among the records of one thread."""
    rows = np.flatnonzero(records.type == layout.SNAPSHOT)
    return Shots(records.probe[rows], records.ticks[rows], records.count[rows], records.fields[rows])


def _throughput(records: Decoded) -> NDArray[np.bool_]:
    return np.asarray(records.type == layout.TPT)


def _ending(records: Decoded, rows: NDArray[Any]) -> Spans:
    return Spans(records.probe[rows], records.ticks[rows] - records.length[rows], records.ticks[rows])


@dataclass(frozen=True, slots=True)
class Nested:
    """Spans in the order in which they began, callers before callees: a tree."""

    order: NDArray[np.intp]
    """(n,) which of the given spans each is."""
    begin: NDArray[np.int64]
    """(n,) ticks."""
    end: NDArray[np.int64]
    """(n,) ticks, never beyond that of the span around."""
    depth: NDArray[np.int64]
    """(n,) how many spans are around each."""
    parent: NDArray[np.int64]
    """(n,) place of the span around each; NOWHERE: none."""
    size: NDArray[np.int64]
    """(n,) spans in each, itself included: they follow it."""


def nest(spans: Spans) -> Nested:
    """Which span lies in which, for spans of one thread in the order of their ends.

    Times are exact ticks of one clock, so none can cross; damaged records that do are cut.
    """
    order = np.lexsort((-np.arange(len(spans)), -spans.end, spans.begin))  # of equal ones the last to end is around
    begins, ends = spans.begin[order].tolist(), spans.end[order].tolist()
    depth, parent, size = [0] * len(ends), [NOWHERE] * len(ends), [1] * len(ends)
    around: list[int] = []
    for place, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        while around and ends[around[-1]] <= begin and not begin == end == ends[around[-1]]:
            last = around.pop()
            size[last] = place - last
        if around:
            parent[place] = around[-1]
            ends[place] = min(end, ends[around[-1]])
        depth[place] = len(around)
        around.append(place)
    for last in around:
        size[last] = len(ends) - last
    columns = (np.array(column, np.int64) for column in (ends, depth, parent, size))
    return Nested(order, spans.begin[order], *columns)


def innermost(nested: Nested, at: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m,) place of the innermost span around each moment; NOWHERE: none."""
    if not len(nested.begin):
        return np.full(len(at), NOWHERE, np.int64)
    place = np.searchsorted(nested.begin, at, side="right").astype(np.int64) - 1
    while (outside := (place >= 0) & (nested.end[place] < at)).any():
        place[outside] = nested.parent[place[outside]]
    return place
