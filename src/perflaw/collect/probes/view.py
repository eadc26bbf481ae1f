"""What goes on now, for a person who looks: rates and values of each probe over a short time. Bounded whatever comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.collect.probes import layout
from perflaw.collect.probes.decoding import Decoded, executions

MOST: Final = 1 << 14
"""Values of a probe that the quantiles of a view are of; beyond it every second one is left out, again and again."""


@dataclass(frozen=True, slots=True)
class Row:
    """A probe over the time of a view."""

    name: str
    """Its name."""
    type: str
    """Its type."""
    value: str
    """What the values are: name of the first field and its unit; ``ns`` of LAT and TPT an execution."""
    rate: float
    """Executions a second."""
    mean: float | None
    """Mean of the values; None where there are none."""
    p50: float | None
    """Half of them are no greater."""
    p99: float | None
    """99 of 100 are no greater."""
    most: float | None
    """The greatest."""


@dataclass(slots=True)
class _Seen:
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
        if sum(map(len, self.values)) > MOST:
            self.values = [np.concatenate(self.values)[::2]]


class LiveView:
    """Downstream of a tracer: takes records, and gives rows for the time since the last ones."""

    def __init__(self, wanted: Callable[[str], bool] = lambda name: True) -> None:
        self._wanted = wanted
        self._seen: dict[tuple[str, str], _Seen] = {}

    def take(self, records: Decoded) -> None:
        """Add records of one ring."""
        times, known = executions(records), {probe.id: probe for probe in records.source.probes}
        for number in np.unique(records.probe).tolist():
            probe = known.get(number)
            if probe is None or not self._wanted(probe.name):
                continue
            rows = np.flatnonzero(records.probe == number)
            seen = self._seen.setdefault((probe.name, probe.type), _Seen(_value(probe.fields, probe.unit, probe.type)))
            seen.add(float(times[rows].sum()), _values(records, rows))

    def rows(self, seconds: float) -> list[Row]:
        """One a probe that had records, by name; the next view begins."""
        seen, self._seen = self._seen, {}
        return [_row(*names, one, seconds) for names, one in sorted(seen.items())]


def _value(fields: tuple[str, ...], unit: str, kind: str) -> str:
    if kind in (layout.TYPES[layout.LAT], layout.TYPES[layout.TPT]):
        return "ns"
    return f"{fields[0]} {unit}".strip() if fields else unit


def _values(records: Decoded, rows: NDArray[Any]) -> NDArray[np.float64]:
    """The first field of each; of TPT the time of one execution."""
    first = np.ascontiguousarray(records.fields[rows, 0]).view(np.int64).astype(np.float64)
    throughput = records.type[rows] == layout.TPT
    return np.where(throughput, records.fields[rows, 1] / np.maximum(first, 1.0), first)


def _row(name: str, kind: str, seen: _Seen, seconds: float) -> Row:
    middle, high = np.quantile(np.concatenate(seen.values), [0.5, 0.99]).tolist()
    mean = seen.total / seen.count
    return Row(name, kind, seen.value, seen.executions / max(seconds, 1e-9), mean, middle, high, seen.most)
