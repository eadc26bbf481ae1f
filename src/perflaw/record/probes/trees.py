"""The probes of one process as a call tree: LAT and TPT probes are components, SNAPSHOT values in them are features.

The last ``HELD`` spans of a thread are held back, for a span around them may still be open: they are put below a span that
ends later. Older spans stand by themselves, so memory is bounded.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from perflaw.record.build import BuildError, build, core
from perflaw.record.probes import layout
from perflaw.record.probes.collector import ProbeProcess
from perflaw.record.probes.decoding import (
    ProbeRecords,
    Snapshots,
    Spans,
    SpanTree,
    combined_spans_of,
    innermost,
    nest,
    snapshots_of,
    spans_of,
)
from perflaw.record.probes.rings import TickClock
from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.call_tree import to_tables
from perflaw.record.tree.core import Core, RingWriter, TreeTables
from perflaw.record.tree.records import DEFAULT_LANES, ENTER, EXIT, FEATURE, RECORD, THREAD, Definitions
from perflaw.types import Component

CAPACITY: Final = 1 << 13
"""Events that a ring file holds: 256 kB."""


class Builder(Protocol):
    """Builds the call tree of events of several threads, each in order."""

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """The next events (n,) of a thread."""

    def finish(self) -> TreeTables:
        """The tree; no events may follow."""


class CoreBuilder:
    """Builds by the C core, which reads ring files in a temporary folder."""

    def __init__(self, library: Path, seed: int) -> None:
        self._core = Core(library, seed, DEFAULT_LANES)
        self._folder = tempfile.TemporaryDirectory(prefix="perflaw-")
        self._rings: dict[int, RingWriter] = {}

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """See :class:`Builder`."""
        writer = self._rings.get(ring)
        if writer is None:
            writer = self._rings[ring] = RingWriter(Path(self._folder.name, f"{ring}.ring"), CAPACITY)
            self._core.attach(writer.path)
            begun = np.zeros(1, RECORD)
            begun["kind"], begun["value"] = THREAD, ring
            events = np.concatenate([begun, events])
        for at in range(0, len(events), CAPACITY):
            writer.append(events[at : at + CAPACITY])
            while self._core.step():
                pass

    def finish(self) -> TreeTables:
        """See :class:`Builder`."""
        tree = self._core.finish()
        self._rings.clear()
        self._folder.cleanup()
        return tree


class TwinBuilder:
    """Builds by the readable Python twin, which takes some microseconds an event."""

    def __init__(self, seed: int) -> None:
        self._builder = TreeBuilder(seed)

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """See :class:`Builder`."""
        self._builder.feed(ring, events.tolist())

    def finish(self) -> TreeTables:
        """See :class:`Builder`."""
        return to_tables(self._builder.finish())


def builder(seed: int) -> Builder:
    """The C core's builder where it can be built, otherwise that of its Python twin."""
    try:
        return CoreBuilder(build(core()), seed)
    except (BuildError, OSError, MemoryError):
        return TwinBuilder(seed)


FIRST_CODE: Final = 1
"""Code of probe 0 as a function; code 0 stands for a tracer's calibration."""


@dataclass(frozen=True, slots=True)
class SpanFeatures:
    """Features of spans, from the snapshots in them."""

    span: NDArray[np.int64]
    """(k,) place of the span, ascending."""
    number: NDArray[np.int64]
    """(k,) number of the feature."""
    value: NDArray[np.float64]
    """(k,) value of the feature."""


def feature_number(probe: int, field: int) -> int:
    """Number of the feature that stands for a field of a SNAPSHOT probe."""
    return probe * layout.FIELDS + field


def features_of_spans(nested: SpanTree, shots: Snapshots) -> SpanFeatures:
    """Each snapshot gives features to the innermost span around it; of several snapshots of a probe, the last one counts."""
    span = innermost(nested, shots.at)
    row, field = np.nonzero((np.arange(layout.FIELDS) < shots.count[:, None]) & (span >= 0)[:, None])
    key = span[row] * (layout.PROBES * layout.FIELDS) + shots.probe[row].astype(np.int64) * layout.FIELDS + field
    _, first = np.unique(key[::-1], return_index=True)
    last = len(key) - 1 - first
    values = np.ascontiguousarray(shots.values).view(np.int64)[row[last], field[last]]
    return SpanFeatures(span[row[last]], key[last] % (layout.PROBES * layout.FIELDS), values.astype(np.float64))


def events_of(
    spans: Spans, nested: SpanTree, features: SpanFeatures, clock: TickClock, keys: NDArray[np.int32], frame: int
) -> NDArray[Any]:
    """The events that a tracer would have written: entries, features and exits, in order.

    ``keys``: a priority for each span; ``frame``: a number above all that were used before.
    """
    count = len(nested.order)
    before = np.searchsorted(features.span, np.arange(count + 1))  # number of features of earlier spans
    place = np.arange(count)
    entry = 2 * place - nested.depth + before[:-1]
    leave = entry + 2 * nested.size - 1 + before[place + nested.size] - before[:-1]
    events = np.zeros(2 * count + len(features.span), RECORD)
    code = spans.probe[nested.order].astype(np.int32) + FIRST_CODE
    for rows, kind, value in ((entry, ENTER, clock.since(nested.begin)), (leave, EXIT, clock.since(nested.end))):
        events["kind"][rows], events["value"][rows] = kind, value
        events["code"][rows], events["frame"][rows] = code, frame + place
    events["site"], events["key"] = -1, -1
    events["key"][entry] = keys
    rows = entry[features.span] + 1 + np.arange(len(features.span)) - before[features.span]
    events["kind"][rows], events["value"][rows] = FEATURE, features.value.view(np.int64)
    events["code"][rows], events["frame"][rows] = features.number, frame + features.span
    return events


HELD: Final = 1 << 14
"""Spans of a thread that are held back, together with twice as many snapshots."""
_COMBINED_RINGS: Final = 1 << 20
"""Added to the number of a ring for its TPT records of several executions, which have no span around them."""


@dataclass(slots=True)
class _HeldRecords:
    """Spans and snapshots of a ring that are held back."""

    thread: int
    spans: Spans
    shots: Snapshots


class ProcessTree:
    """Builds the call tree of a process from its records, ring by ring."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random: Generator = np.random.default_rng(seed)
        self._waiting: dict[int, _HeldRecords] = {}
        self._builder: Builder | None = None
        self._frame = 1
        self._clock = TickClock()

    def take(self, records: ProbeRecords) -> None:
        """Take the next records of a ring. If another thread took the ring, the records of the last one are complete."""
        changes = np.flatnonzero(np.diff(records.thread)) + 1
        for rows in np.split(np.arange(len(records)), changes):
            if len(rows):
                self._take(records.take(rows) if len(changes) else records)

    def _take(self, records: ProbeRecords) -> None:
        thread, ring, self._clock = int(records.thread[0]), records.ring, records.source.clock
        held = self._waiting.get(ring)
        if held and held.thread != thread:
            self._feed_tree(ring, held.spans, nest(held.spans), held.shots)
            held = None
        combined = combined_spans_of(records)
        if len(combined):
            alone = np.arange(len(combined))
            apart = SpanTree(alone, combined.begin, combined.end, alone * 0, alone * 0 - 1, alone * 0 + 1)
            nothing = SpanFeatures(alone[:0], alone[:0], np.empty(0))
            self._feed(_COMBINED_RINGS + ring, combined, apart, nothing, len(combined))
        spans, shots = spans_of(records), snapshots_of(records)
        if held:
            spans, shots = _joined(held.spans, spans), _joined(held.shots, shots)
        if len(spans) > 2 * HELD:  # the oldest spans beyond the limit go into the tree with all that lies in them
            nested = nest(spans)
            tops = np.flatnonzero(nested.depth == 0)
            cut = int(next((top for top in tops if len(spans) - top <= HELD), len(spans)))
            going, staying = nested.order[:cut], nested.order[cut:]
            until = int(nested.begin[cut]) if cut < len(spans) else int(nested.end[tops[-1]]) + 1
            early = shots.at < until
            part = spans.take(np.sort(going))
            self._feed_tree(ring, part, nest(part), shots.take(early))
            spans, shots = spans.take(np.sort(staying)), shots.take(~early)
        latest = np.arange(max(0, len(shots) - 2 * HELD), len(shots))
        self._waiting[ring] = _HeldRecords(thread, spans, shots.take(latest))

    def _feed_tree(self, ring: int, spans: Spans, nested: SpanTree, shots: Snapshots) -> None:
        if len(spans):
            self._feed(ring, spans, nested, features_of_spans(nested, shots), len(spans))

    def _feed(self, ring: int, spans: Spans, nested: SpanTree, features: SpanFeatures, count: int) -> None:
        keys = self._random.integers(0, 1 << 31, count, dtype=np.int64).astype(np.int32)
        self._builder = self._builder or builder(self._seed)
        self._builder.feed(ring, events_of(spans, nested, features, self._clock, keys, self._frame))
        self._frame += count

    def finish(self) -> TreeTables | None:
        """The call tree of all records; None if there was no LAT or TPT record."""
        for ring, held in self._waiting.items():
            self._feed_tree(ring, held.spans, nest(held.spans), held.shots)
        self._waiting.clear()
        return self._builder.finish() if self._builder else None


_Columns = TypeVar("_Columns", Spans, Snapshots)


def _joined(first: _Columns, second: _Columns) -> _Columns:
    columns = (np.concatenate([getattr(first, one.name), getattr(second, one.name)]) for one in fields(first))
    return type(first)(*columns)


def define(known: Definitions, source: ProbeProcess) -> None:
    """Define the probes of a process: LAT and TPT as functions, fields of SNAPSHOT as features."""
    for probe in source.probes:
        if probe.type in (layout.TYPES[layout.LAT], layout.TYPES[layout.TPT]):
            known.define(probe.id + FIRST_CODE, Component(probe.name, language="probe"), ())
        if probe.type == layout.TYPES[layout.SNAPSHOT]:
            for place, field in enumerate(probe.fields):
                known.features[feature_number(probe.id, place)] = feature_name(probe.name, field)


def feature_name(probe: str, field: str) -> str:
    """``work.rows``; characters other than letters, digits, dots, dashes and underscores become underscores."""
    name = re.sub(r"[^\w.-]", "_", f"{probe}.{field}")
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
