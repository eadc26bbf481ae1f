"""Records of the ring made columns: who, what, when in ns. No value is interpreted but ticks, which become ns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.probes import layout
from perflaw.record.probes.collector import Piece, Source

_LONGEST: Final = np.uint64(1 << 53)
"""No span takes so many cycles."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Records of one ring, in the order they were made."""

    source: Source
    """The process."""
    ring: int
    """The ring's number in it."""
    probe: NDArray[Any]
    """(n,) ids."""
    type: NDArray[Any]
    """(n,) types, as ``layout.TYPES`` numbers them."""
    count: NDArray[Any]
    """(n,) how many fields each has."""
    cpu: NDArray[Any]
    """(n,) processors."""
    thread: NDArray[Any]
    """(n,) the system's numbers of threads, their lower 24 bits."""
    at: NDArray[np.int64]
    """(n,) CLOCK_MONOTONIC of the host, ns."""
    fields: NDArray[Any]
    """(n, 6) values, unsigned; those of LAT and TPT that are cycles in the record are ns here."""
    ticks: NDArray[np.int64]
    """(n,) the same as ``at`` in ticks of the process's clock since its area was made: exact."""
    length: NDArray[np.int64]
    """(n,) cycles of LAT and TPT; 0 of others."""

    def __len__(self) -> int:
        return len(self.probe)

    def take(self, rows: NDArray[Any]) -> Decoded:
        """These records alone, by number or by a mask."""
        arrays = (
            self.probe,
            self.type,
            self.count,
            self.cpu,
            self.thread,
            self.at,
            self.fields,
            self.ticks,
            self.length,
        )
        return Decoded(self.source, self.ring, *(array[rows] for array in arrays))


def decode(piece: Piece, source: Source) -> Decoded:
    """The records of a piece as columns. Counts of fields beyond the six are cut: the record has no more."""
    what = piece.records["what"]
    kind = (what >> np.uint64(16) & np.uint64(15)).astype(np.uint8)
    fields, length = piece.records["fields"].copy(), np.zeros(len(what), np.int64)
    for of, place in layout.CYCLES.items():
        rows = kind == of
        length[rows] = np.minimum(fields[rows, place], _LONGEST).astype(np.int64)
        fields[rows, place] = source.clock.lengths(length[rows]).astype(np.uint64)
    return Decoded(
        source,
        piece.ring,
        (what & np.uint64(0xFFFF)).astype(np.uint16),
        kind,
        np.minimum(what >> np.uint64(20) & np.uint64(15), layout.FIELDS).astype(np.uint8),
        (what >> np.uint64(24) & np.uint64(0xFFFF)).astype(np.uint16),
        (what >> np.uint64(40)).astype(np.uint32),
        source.clock.ns(piece.records["timestamp"]),
        fields,
        (piece.records["timestamp"] - np.uint64(source.clock.ticks0)).view(np.int64),
        length,
    )


def executions(records: Decoded) -> NDArray[np.float64]:
    """(n,) how many executions each record tells of: counted by CNT and TPT, else one record for ``subsample`` of them."""
    each = np.ones(1 << 16)
    for probe in records.source.probes:
        each[probe.id] = probe.executions
    counted = (records.type == layout.CNT) | (records.type == layout.TPT)
    return np.where(counted, records.fields[:, 0].astype(np.float64), each[records.probe])


# ---- Records of one thread made a tree: a span of LAT or TPT is an invocation, what lies in it is below it.
#
# A record is written when its span ends, so callees come before callers, and times alone say what lies in what.

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
