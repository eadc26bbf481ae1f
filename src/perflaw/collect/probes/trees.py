"""The probes of one process as a call tree: LAT and TPT are components, what SNAPSHOT told in them their features.

The last ``HELD`` spans of a thread are held back, for nothing tells whether one around them is still to end: what lies in
a span that ends later is put below it, what is older stands by itself. Memory is bounded whatever the program does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator

from perflaw.collect.core_tables import CoreTree
from perflaw.collect.definitions import Definitions
from perflaw.collect.probes import layout
from perflaw.collect.probes.batches import Source
from perflaw.collect.probes.builders import Builder, builder
from perflaw.collect.probes.clock import Clock
from perflaw.collect.probes.decoding import Decoded
from perflaw.collect.probes.events import FIRST_CODE, Told, events_of, feature_number, told
from perflaw.collect.probes.nesting import Nested, Shots, Spans, lumps, nest, shots_of, spans_of
from perflaw.types import Component

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
