"""A tree of spans as the events that a tracer would have told: what call trees are built from (``collect/layout.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.collect.layout import ENTER, EXIT, FEATURE, RECORD
from perflaw.collect.probes import layout
from perflaw.collect.probes.clock import Clock
from perflaw.collect.probes.nesting import Nested, Shots, Spans, innermost

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
