"""The probes of one process as a call tree: LAT and TPT are components, what SNAPSHOT told in them their features.

The last ``HELD`` spans of a thread are held back, for nothing tells whether one around them is still to end: what lies in
a span that ends later is put below it, what is older stands by itself. Memory is bounded whatever the program does.
"""

from __future__ import annotations

import mmap
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from perflaw.record.build import BuildError, build, core
from perflaw.record.probes import layout
from perflaw.record.probes.collector import Source
from perflaw.record.probes.decoding import Decoded, Nested, Shots, Spans, innermost, lumps, nest, shots_of, spans_of
from perflaw.record.probes.rings import Clock
from perflaw.record.records import ENTER, EXIT, FEATURE, RECORD, THREAD, Definitions
from perflaw.record.tree.builder import ALWAYS, TreeBuilder
from perflaw.record.tree.call_tree import columns
from perflaw.record.tree.core import Core
from perflaw.record.tree.core_tables import CoreTree
from perflaw.types import Component

# ---- Call trees of events, by the C core where it can be had, else by its readable twin.

CAPACITY: Final = 1 << 13
"""Events of a ring of ours: 256 kB."""
_START: Final = 4096
_HEAD: Final = np.dtype(
    {"names": ["magic", "version", "capacity", "written"], "formats": ["<u8", "<u4", "<u4", "<u8"], "offsets": [0, 8, 12, 64]}
)  # fmt: skip
"""The head of a ring as native/ring.h has it."""
_MAGIC: Final = int.from_bytes(b"PRFRING1"[::-1], "big")


class Builder(Protocol):
    """Takes events of several threads, each in order; gives their call tree."""

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """The next events (n,) of a thread."""

    def finish(self) -> CoreTree:
        """The tree; nothing can be fed from now on."""


class CoreBuilder:
    """The C core reads rings that we write: each has its file in a folder of its own, removed in the end."""

    def __init__(self, library: Path, seed: int) -> None:
        self._core = Core(library, seed, ALWAYS)
        self._folder = tempfile.TemporaryDirectory(prefix="perflaw-")
        self._rings: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """See :class:`Builder`."""
        head, records = self._rings.get(ring) or self._new(ring)
        for at in range(0, len(events), CAPACITY):
            some = events[at : at + CAPACITY]
            position = int(head["written"][0])
            records[(position + np.arange(len(some))) & (CAPACITY - 1)] = some
            head["written"][0] = position + len(some)
            while self._core.step():
                pass

    def finish(self) -> CoreTree:
        """See :class:`Builder`."""
        tree = self._core.finish()
        self._rings.clear()
        self._folder.cleanup()
        return tree

    def _new(self, ring: int) -> tuple[NDArray[Any], NDArray[Any]]:
        path = Path(self._folder.name, f"{ring}.ring")
        with path.open("w+b") as file:
            file.write(bytes(_START + CAPACITY * RECORD.itemsize))
            file.flush()
            shared = mmap.mmap(file.fileno(), 0)
        head = np.frombuffer(shared, _HEAD, 1)
        head["magic"], head["version"], head["capacity"] = _MAGIC, 1, CAPACITY
        self._core.attach(path)
        made = self._rings[ring] = head, np.frombuffer(shared, RECORD, CAPACITY, _START)
        begun = np.zeros(1, RECORD)
        begun["kind"], begun["value"] = THREAD, ring
        self.feed(ring, begun)
        return made


class TwinBuilder:
    """The readable builder: some microseconds an event."""

    def __init__(self, seed: int) -> None:
        self._builder = TreeBuilder(seed)

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """See :class:`Builder`."""
        names = ("value", "frame", "code", "site", "key", "kind")
        self._builder.feed(ring, zip(*(events[name].tolist() for name in names), strict=True))

    def finish(self) -> CoreTree:
        """See :class:`Builder`."""
        return columns(self._builder.finish())


def builder(seed: int) -> Builder:
    """The best that can be had here."""
    try:
        return CoreBuilder(build(core()), seed)
    except (BuildError, OSError, MemoryError):
        return TwinBuilder(seed)


# ---- A tree of spans as the events that a tracer would have told: what call trees are built from
# (``collect/layout.py``).

FIRST_CODE: Final = 1
"""Number of probe 0 as a function; 0 is a tracer's calibration."""


@dataclass(frozen=True, slots=True)
class Told:
    """Features of spans: what snapshots in them said."""

    span: NDArray[np.int64]
    """(k,) place of the span, ascending."""
    number: NDArray[np.int64]
    """(k,) number of the feature."""
    value: NDArray[np.float64]
    """(k,) its value."""


def feature_number(probe: int, field: int) -> int:
    """Number of the feature that a field of a probe is."""
    return probe * layout.FIELDS + field


def told(nested: Nested, shots: Shots) -> Told:
    """What each snapshot says is a feature of the innermost span around it; of several of a probe the last one holds."""
    span = innermost(nested, shots.at)
    row, field = np.nonzero((np.arange(layout.FIELDS) < shots.count[:, None]) & (span >= 0)[:, None])
    key = span[row] * (layout.PROBES * layout.FIELDS) + shots.probe[row].astype(np.int64) * layout.FIELDS + field
    _, first = np.unique(key[::-1], return_index=True)
    last = len(key) - 1 - first
    values = np.ascontiguousarray(shots.values).view(np.int64)[row[last], field[last]]
    return Told(span[row[last]], key[last] % (layout.PROBES * layout.FIELDS), values.astype(np.float64))


def events_of(
    spans: Spans, nested: Nested, features: Told, clock: Clock, keys: NDArray[np.int32], frame: int
) -> NDArray[Any]:
    """Entries, features and exits in order. ``keys``: a priority a span; ``frame``: a number above all used before."""
    count = len(nested.order)
    before = np.searchsorted(features.span, np.arange(count + 1))  # features of earlier spans
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
"""Spans of a thread that wait for one around them, as do twice as many snapshots."""
_LUMPS: Final = 1 << 20
"""Rings from here on are those of TPT records of several executions: nothing is around them."""


@dataclass(slots=True)
class _Waiting:
    """What a ring holds back."""

    thread: int
    spans: Spans
    shots: Shots


class ProcessTree:
    """Takes the records of a process, ring by ring; gives its call tree."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random: Generator = np.random.default_rng(seed)
        self._waiting: dict[int, _Waiting] = {}
        self._builder: Builder | None = None
        self._frame = 1
        self._clock = Clock()

    def take(self, records: Decoded) -> None:
        """The next records of a ring. Where its thread changed, those of the last one are complete."""
        changes = np.flatnonzero(np.diff(records.thread)) + 1
        for rows in np.split(np.arange(len(records)), changes):
            if len(rows):
                self._take(records.take(rows) if len(changes) else records)

    def _take(self, records: Decoded) -> None:
        thread, ring, self._clock = int(records.thread[0]), records.ring, records.source.clock
        held = self._waiting.get(ring)
        if held and held.thread != thread:
            self._give(ring, held.spans, nest(held.spans), held.shots)
            held = None
        self._lump(ring, lumps(records))
        spans, shots = spans_of(records), shots_of(records)
        if held:
            spans, shots = _both(held.spans, spans), _more(held.shots, shots)
        self._waiting[ring] = self._held(ring, _Waiting(thread, spans, shots))

    def _held(self, ring: int, waiting: _Waiting) -> _Waiting:
        """What waits on, once the oldest spans that are too many were given away with what lies in them."""
        spans, shots = waiting.spans, waiting.shots
        if len(spans) > 2 * HELD:
            nested = nest(spans)
            tops = np.flatnonzero(nested.depth == 0)
            cut = int(next((top for top in tops if len(spans) - top <= HELD), len(spans)))
            going, staying = nested.order[:cut], nested.order[cut:]
            until = int(nested.begin[cut]) if cut < len(spans) else int(nested.end[tops[-1]]) + 1
            early = shots.at < until
            part = spans.take(np.sort(going))
            self._give(ring, part, nest(part), shots.take(early))
            spans, shots = spans.take(np.sort(staying)), shots.take(~early)
        return _Waiting(waiting.thread, spans, shots.take(np.arange(max(0, len(shots) - 2 * HELD), len(shots))))

    def _lump(self, ring: int, spans: Spans) -> None:
        if len(spans):
            count, alone = len(spans), np.arange(len(spans))
            apart = Nested(alone, spans.begin, spans.end, alone * 0, alone * 0 - 1, alone * 0 + 1)
            self._feed(_LUMPS + ring, spans, apart, Told(alone[:0], alone[:0], np.empty(0)), count)

    def _give(self, ring: int, spans: Spans, nested: Nested, shots: Shots) -> None:
        if len(spans):
            self._feed(ring, spans, nested, told(nested, shots), len(spans))

    def _feed(self, ring: int, spans: Spans, nested: Nested, features: Told, count: int) -> None:
        keys = self._random.integers(0, 1 << 31, count, dtype=np.int64).astype(np.int32)
        self._builder = self._builder or builder(self._seed)
        self._builder.feed(ring, events_of(spans, nested, features, self._clock, keys, self._frame))
        self._frame += count

    def finish(self) -> CoreTree | None:
        """The tree of all that was taken; None where no LAT or TPT record came."""
        for ring, held in self._waiting.items():
            self._give(ring, held.spans, nest(held.spans), held.shots)
        self._waiting.clear()
        return self._builder.finish() if self._builder else None


def _both(first: Spans, second: Spans) -> Spans:
    pairs = ((first.probe, second.probe), (first.begin, second.begin), (first.end, second.end))
    return Spans(*(np.concatenate(pair) for pair in pairs))


def _more(first: Shots, second: Shots) -> Shots:
    probe, at, count, values = (
        np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("probe", "at", "count", "values")
    )
    return Shots(probe, at, count, values)


def define(known: Definitions, source: Source) -> None:
    """Tell the names of a process's probes: LAT and TPT as functions, fields of SNAPSHOT as features."""
    for probe in source.probes:
        if probe.type in (layout.TYPES[layout.LAT], layout.TYPES[layout.TPT]):
            known.define(probe.id + FIRST_CODE, Component(probe.name, language="probe"), ())
        if probe.type == layout.TYPES[layout.SNAPSHOT]:
            for place, field in enumerate(probe.fields):
                known.features[feature_number(probe.id, place)] = feature_name(probe.name, field)


def feature_name(probe: str, field: str) -> str:
    """``work.rows``: what is no letter, digit, dot, dash or underscore becomes an underscore."""
    name = re.sub(r"[^\w.-]", "_", f"{probe}.{field}")
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
