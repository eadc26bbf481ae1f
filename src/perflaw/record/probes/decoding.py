"""Records of rings as columns, with times in ns, and the spans and snapshots among them.

A record of a span is written when the span ends, so callees come before callers, and times alone say which span lies in
which.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from perflaw.record.probes import layout
from perflaw.record.probes.collector import ProbeProcess, RingRecords

_LONGEST: Final = np.uint64(1 << 53)
"""Longest length of a span, in cycles; damaged records have more."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of n rows each, in the fields that are arrays; the last field is one."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[-1].name))

    def take(self, rows: NDArray[Any]) -> Self:
        """Some of the rows, by number or by a mask."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(self, **{name: each[rows] for name, each in columns.items() if isinstance(each, np.ndarray)})


@dataclass(frozen=True, slots=True)
class ProbeRecords(Columns):
    """Records of one ring, in the order in which they were made."""

    source: ProbeProcess
    """The process."""
    ring: int
    """The ring's number in it."""
    probe: NDArray[Any]
    """(n,) ids of the probes."""
    type: NDArray[Any]
    """(n,) types, as ``layout.TYPES`` numbers them."""
    count: NDArray[Any]
    """(n,) number of fields of each."""
    cpu: NDArray[Any]
    """(n,) processors."""
    thread: NDArray[Any]
    """(n,) the lower 24 bits of the system's thread numbers."""
    at: NDArray[np.int64]
    """(n,) CLOCK_MONOTONIC of the host, ns."""
    fields: NDArray[Any]
    """(n, 6) unsigned values; cycles of LAT and TPT records are converted to ns."""
    ticks: NDArray[np.int64]
    """(n,) exact time in ticks of the process's clock, since its area was made."""
    length: NDArray[np.int64]
    """(n,) cycles of LAT and TPT records; 0 for others."""


def decode(piece: RingRecords, source: ProbeProcess) -> ProbeRecords:
    """The records of a ring as columns. A record has at most six fields, so larger counts of fields are cut."""
    what = piece.records["what"]
    kind = (what >> np.uint64(16) & np.uint64(15)).astype(np.uint8)
    fields, length = piece.records["fields"].copy(), np.zeros(len(what), np.int64)
    for of, place in layout.CYCLES.items():
        rows = kind == of
        length[rows] = np.minimum(fields[rows, place], _LONGEST).astype(np.int64)
        fields[rows, place] = source.clock.lengths(length[rows]).astype(np.uint64)
    return ProbeRecords(
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


def executions(records: ProbeRecords) -> NDArray[np.float64]:
    """(n,) executions that each record stands for: as CNT and TPT count them, otherwise the executions for one record."""
    each = np.ones(1 << 16)
    for probe in records.source.probes:
        each[probe.id] = probe.executions
    counted = (records.type == layout.CNT) | (records.type == layout.TPT)
    return np.where(counted, records.fields[:, 0].astype(np.float64), each[records.probe])


NOWHERE: Final = -1
"""Stands for a span where there is none."""


@dataclass(frozen=True, slots=True)
class Spans(Columns):
    """Executions of the code between two probes."""

    probe: NDArray[Any]
    """(n,) ids of the probes."""
    begin: NDArray[np.int64]
    """(n,) ticks."""
    end: NDArray[np.int64]
    """(n,) ticks."""


@dataclass(frozen=True, slots=True)
class Snapshots(Columns):
    """Values of SNAPSHOT records, in order."""

    probe: NDArray[Any]
    """(m,) ids of the probes."""
    at: NDArray[np.int64]
    """(m,) ticks."""
    count: NDArray[Any]
    """(m,) number of fields of each."""
    values: NDArray[Any]
    """(m, 6) values."""


def spans_of(records: ProbeRecords) -> Spans:
    """Spans among the records of one thread, without the TPT records of several executions (:func:`combined_spans_of`)."""
    latencies, single = records.type == layout.LAT, (records.type == layout.TPT) & (records.fields[:, 0] == 1)
    return _ending(records, np.flatnonzero(latencies | single))


def combined_spans_of(records: ProbeRecords) -> Spans:
    """TPT records of several executions, each as one span of their total time. They may overlap, so no span lies in them."""
    return _ending(records, np.flatnonzero((records.type == layout.TPT) & (records.fields[:, 0] > 1)))


def snapshots_of(records: ProbeRecords) -> Snapshots:
    """Snapshots among the records of one thread."""
    rows = np.flatnonzero(records.type == layout.SNAPSHOT)
    return Snapshots(records.probe[rows], records.ticks[rows], records.count[rows], records.fields[rows])


def _ending(records: ProbeRecords, rows: NDArray[Any]) -> Spans:
    return Spans(records.probe[rows], records.ticks[rows] - records.length[rows], records.ticks[rows])


@dataclass(frozen=True, slots=True)
class SpanTree:
    """Spans of a thread as a tree, in the order in which they began, callers before callees."""

    order: NDArray[np.intp]
    """(n,) place of each among the given spans."""
    begin: NDArray[np.int64]
    """(n,) ticks."""
    end: NDArray[np.int64]
    """(n,) ticks, never after the end of the span around it."""
    depth: NDArray[np.int64]
    """(n,) number of spans around each."""
    parent: NDArray[np.int64]
    """(n,) place of the span around each, or NOWHERE."""
    size: NDArray[np.int64]
    """(n,) number of spans in each, itself included; they follow it."""


def nest(spans: Spans) -> SpanTree:
    """The tree of the spans of one thread, given in the order of their ends.

    Times are exact ticks of one clock, so spans cannot overlap partly; damaged records that do are cut.
    """
    # Of spans with equal times, the last to end is the outer one.
    order = np.lexsort((-np.arange(len(spans)), -spans.end, spans.begin))
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
    return SpanTree(order, spans.begin[order], *columns)


def innermost(nested: SpanTree, at: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m,) place of the innermost span around each moment, or NOWHERE."""
    if not len(nested.begin):
        return np.full(len(at), NOWHERE, np.int64)
    place = np.searchsorted(nested.begin, at, side="right").astype(np.int64) - 1
    while (outside := (place >= 0) & (nested.end[place] < at)).any():
        place[outside] = nested.parent[place[outside]]
    return place
