"""Metrics from records of probes, over consecutive short windows: readings for studies, and a live view (SPEX, §3.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import UsageError
from perflaw.record.probes import layout
from perflaw.record.probes.collector import Batch
from perflaw.record.probes.decoding import ProbeRecords, decode, executions
from perflaw.types.studies import Reading, StudyMetric

WINDOW_S: Final = 0.1
"""Shortest window of a reading."""
MOST: Final = 1 << 16
"""Values of a window that are kept for quantiles; when there are more, every second one is dropped."""
_QUANTILES: Final[dict[str, float]] = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
_STATISTICS: Final = ("mean", *_QUANTILES)
"""Statistics of a field."""
_NEXT: Final = "{probe: query, rate: count}"


@dataclass(slots=True)
class _MetricWindow:
    """The records of a metric since its last reading."""

    metric: StudyMetric
    probe: str
    statistic: str
    """``rate``, or the name of a statistic."""
    of: str
    """Field of the statistic; empty for the first field; ``count`` for the rate of executions."""
    records: int = 0
    total: float = 0.0
    values: list[NDArray[np.float64]] = field(default_factory=list)

    def take(self, records: ProbeRecords, ids: dict[int, int]) -> None:
        """Add the records of these probes; ``ids``: id → place of the field."""
        rows = np.flatnonzero(np.isin(records.probe, list(ids)))
        if not len(rows):
            return
        self.records += len(rows)
        if self.statistic == "rate" and self.of == "count":
            self.total += float(executions(records)[rows].sum())
            return
        places = np.array([ids[number] for number in records.probe[rows].tolist()])
        some = np.ascontiguousarray(records.fields[rows, places]).view(np.int64).astype(np.float64)
        self.total += float(some.sum())
        if self.statistic != "rate":
            self.values.append(some)
            if sum(map(len, self.values)) > MOST:
                self.values = [np.concatenate(self.values)[::2]]

    def reading(self, at_s: float, seconds: float) -> Reading | None:
        """The metric over the window; None without records, except for rates. The next window begins."""
        records, total, values = self.records, self.total, self.values
        self.records, self.total, self.values = 0, 0.0, []
        if self.statistic == "rate":
            return Reading(self.metric.name, at_s, total / seconds, records)
        if not records:
            return None
        if self.statistic == "mean":
            return Reading(self.metric.name, at_s, total / records, records)
        found = float(np.quantile(np.concatenate(values), _QUANTILES[self.statistic]))
        return Reading(self.metric.name, at_s, found, records)


class ProbeMetrics:
    """Turns batches into readings of those metrics whose source is a probe."""

    def __init__(self, metrics: Sequence[StudyMetric], window_s: float = WINDOW_S) -> None:
        """UsageError if a source names no known statistic."""
        self.window_s = window_s
        self.missing: dict[str, str] = {}
        """Metric → why it has no reading, or no reliable one: no such probe or field, or an id that is used twice."""
        self._windows: list[_MetricWindow] = []
        for metric in metrics:
            source = metric.source
            if "probe" not in source:
                continue
            statistics = [name for name in source if name == "rate" or name in _STATISTICS]
            if len(statistics) != 1 or not isinstance(source["probe"], str):
                known = ", ".join(["rate", *_STATISTICS])
                raise UsageError(f"metric {metric.name}: {dict(source)}", f"a probe's name and one of {known}", _NEXT)
            statistic = statistics[0]
            of = str(source[statistic])
            if statistic == "rate" and of not in ("count", "sum"):
                raise UsageError(f"metric {metric.name}: rate: {of}", "count or sum", _NEXT)
            if statistic == "rate" and of == "sum":
                of = str(source.get("field", ""))
            self._windows.append(_MetricWindow(metric, source["probe"], statistic, of))
        self._begin: int | None = None
        self._last = 0

    def begin(self, at_ns: int) -> None:
        """Set time 0, when the target is ready; earlier records do not count. By default, the first batch is time 0."""
        self._begin = self._last = at_ns
        for window in self._windows:
            window.reading(0.0, 1.0)

    def take(self, batch: Batch) -> list[Reading]:
        """Take a batch; gives the readings that are due after it, none if the window goes on."""
        if self._begin is None:
            times = [
                int(batch.sources[piece.source].clock.ns(piece.records["timestamp"][:1])[0]) for piece in batch.pieces
            ]
            self.begin(min([*times, batch.at_ns]))
        for piece in batch.pieces:
            records = decode(piece, batch.sources[piece.source])
            for window in self._windows:
                probes = [probe for probe in records.source.probes if probe.name == window.probe]
                counted = window.of in ("", "count")
                places = {probe.id: 0 if counted else _place(probe.fields, window.of) for probe in probes}
                window.take(records, {number: place for number, place in places.items() if place is not None})
        known = {probe.name: probe for source in batch.sources.values() for probe in source.probes}
        for window in self._windows:
            name, probe = window.metric.name, known.get(window.probe)
            self.missing.pop(name, None)
            if probe is None:
                self.missing[name] = f"no probe {window.probe!r}; there are {', '.join(sorted(known)) or 'none'}"
            elif probe.conflict:
                self.missing[name] = f"probe id {probe.id} is used twice: by {probe.name} and another"
            elif window.of not in ("", "count") and _place(probe.fields, window.of) is None:
                self.missing[name] = f"{probe.name} has the fields {', '.join(probe.fields)}"
        return self.flush(batch.at_ns) if (batch.at_ns - self._last) / 1e9 >= self.window_s else []

    def flush(self, at_ns: int) -> list[Reading]:
        """Readings of the records since the last readings, up to ``at_ns``, the end of a trial."""
        seconds = (at_ns - self._last) / 1e9
        if seconds <= 0:
            return []
        self._last = at_ns
        at_s = (at_ns - (self._begin or 0)) / 1e9
        found = (window.reading(at_s, seconds) for window in self._windows)
        return [reading for reading in found if reading is not None]


def _place(fields: Sequence[str], name: str) -> int | None:
    """Place of a field; ``v0`` stands for the first field whatever its name, ``ns`` for the time of a span."""
    if name in fields:
        return fields.index(name)
    if name == "ns" and "cycles" in fields:
        return fields.index("cycles")
    return int(name[1:]) if name[:1] == "v" and name[1:].isdigit() and int(name[1:]) < layout.FIELDS else None


VIEW_MOST: Final = 1 << 14
"""Values of a probe that a view keeps for quantiles; when there are more, every second one is dropped."""


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """A probe in a live view."""

    name: str
    """Name of the probe."""
    type: str
    """Type of the probe."""
    value: str
    """Name and unit of the first field; ``ns`` for LAT and TPT, whose values are times of one execution."""
    rate: float
    """Executions per second."""
    mean: float | None
    """Mean of the values; None without values."""
    p50: float | None
    """Median of the values."""
    p99: float | None
    """99th percentile of the values."""
    most: float | None
    """Largest value."""


@dataclass(slots=True)
class _ViewedProbe:
    value: str
    executions: float = 0.0
    count: int = 0
    total: float = 0.0
    most: float = -np.inf
    values: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, times: float, values: NDArray[np.float64]) -> None:
        self.executions += times
        self.count += len(values)
        self.total += float(values.sum())
        self.most = max(self.most, float(values.max()))
        self.values.append(values)
        if sum(map(len, self.values)) > VIEW_MOST:
            self.values = [np.concatenate(self.values)[::2]]


class LiveView:
    """A component downstream of a tracer that gives rows for the records since the last rows."""

    def __init__(self, wanted: Callable[[str], bool] = lambda name: True) -> None:
        self._wanted = wanted
        self._seen: dict[tuple[str, str], _ViewedProbe] = {}

    def take(self, records: ProbeRecords) -> None:
        """Take the records of one ring."""
        times, known = executions(records), {probe.id: probe for probe in records.source.probes}
        for number in np.unique(records.probe).tolist():
            probe = known.get(number)
            if probe is None or not self._wanted(probe.name):
                continue
            rows = np.flatnonzero(records.probe == number)
            value = "ns"
            if probe.type not in (layout.TYPES[layout.LAT], layout.TYPES[layout.TPT]):
                value = f"{probe.fields[0]} {probe.unit}".strip() if probe.fields else probe.unit
            seen = self._seen.setdefault((probe.name, probe.type), _ViewedProbe(value))
            first = np.ascontiguousarray(records.fields[rows, 0]).view(np.int64).astype(np.float64)
            throughput = records.type[rows] == layout.TPT
            seen.add(
                float(times[rows].sum()), np.where(throughput, records.fields[rows, 1] / np.maximum(first, 1.0), first)
            )

    def rows(self, seconds: float) -> list[ProbeRow]:
        """One row for each probe that had records, by name; the next view begins."""
        seen, self._seen = self._seen, {}
        rows = []
        for (name, kind), one in sorted(seen.items()):
            middle, high = np.quantile(np.concatenate(one.values), [0.5, 0.99]).tolist()
            a_second, mean = one.executions / max(seconds, 1e-9), one.total / one.count
            rows.append(ProbeRow(name, kind, one.value, a_second, mean, middle, high, one.most))
        return rows
