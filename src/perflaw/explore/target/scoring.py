"""Metrics of a trial from what it printed and used: pure functions of what is kept, so that trials can be scored anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from perflaw.explore.target.outputs import document_of, matched_number, number_at
from perflaw.types.studies import Reading, StudyMetric

_BATCHES: Final = 10
"""Number of batches whose means give the standard error of a series."""
_FEWEST: Final = 5
"""Number of values below which no warm-up is cut off."""


@dataclass(frozen=True, slots=True)
class SteadyMean:
    """Mean of a series from where it is steady."""

    mean: float
    """Mean of the values kept, weighted by their counts."""
    error: float | None
    """Its standard error; None for fewer than two values."""
    kept: int
    """Number of values kept."""
    warm: int
    """Number of values of the warm-up, which are left out."""
    settled: bool
    """Whether the warm-up ends before the middle; else the series may never have become steady."""


def steady_mean(values: Sequence[float], weights: Sequence[float] | None = None) -> SteadyMean:
    """Return the mean of the steady part of (n,) values, n ≥ 1; ``weights`` are the numbers of records behind them.

    The warm-up ends where the standard error of the mean of the rest is least (MSER; White, "An effective truncation heuristic
    for bias reduction in simulation output", Simulation 69(6), 1997). It is at most half of the values. The error of the mean
    is that of the means of batches (Law and Kelton, §9.5.3), since values that are close in time are correlated.

    >>> found = steady_mean([1, 2, 4, 9.9, 10, 10.1, 10, 9.9, 10, 10.1, 10, 9.9])
    >>> found.warm, round(found.mean, 2), found.settled
    (3, 9.99, True)
    """
    series = np.asarray(values, dtype=np.float64)
    counts = np.ones(len(series)) if weights is None else np.maximum(np.asarray(weights, dtype=np.float64), 1e-12)
    n, warm = len(series), 0
    if n >= _FEWEST:
        left = np.arange(n, 0, -1)
        sums, squares = np.cumsum(series[::-1])[::-1], np.cumsum(np.square(series)[::-1])[::-1]
        spread = np.maximum(squares - sums**2 / left, 0) / np.square(left.astype(np.float64))
        warm = int(np.argmin(spread[: n // 2 + 1]))
    kept, counts = series[warm:], counts[warm:]
    error = None
    if len(kept) >= 2:
        batches = [part.mean() for part in np.array_split(kept, min(_BATCHES, len(kept)))]
        error = float(np.std(batches, ddof=1) / np.sqrt(len(batches)))
    settled = n < _FEWEST or 2 * warm < n - 1
    return SteadyMean(float(np.average(kept, weights=counts)), error, len(kept), warm, settled)


@dataclass(frozen=True, slots=True)
class RawResult:
    """All that a trial gave, before it is scored."""

    stdout: str = ""
    """Standard output of the program, or of the workload."""
    stderr: str = ""
    """Its standard error."""
    result: str = ""
    """Text of the result: standard output, or a file."""
    wall_s: float = 0.0
    """Duration."""
    cpu_s: float = 0.0
    """CPU time of the program and the target."""
    memory_bytes: int = 0
    """Peak memory of the program and the target."""
    readings: tuple[Reading, ...] = ()
    """Readings in the order in which they came."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why the probes give no value, by metric."""


@dataclass(slots=True)
class TrialScore:
    """Values of a trial's metrics."""

    metrics: dict[str, float] = field(default_factory=dict)
    """Value by metric."""
    scatter: dict[str, float] = field(default_factory=dict)
    """Standard error by metric, for metrics whose readings show it."""
    n: int = 1
    """Number of readings behind the values; 1 where the result is a single one."""
    missing: str = ""
    """Why a metric has no value; empty if all have one."""
    remark: str = ""
    """Remark on the values: that a metric may never have become steady."""


def score(metrics: Sequence[StudyMetric], result: Mapping[str, Any], raw: RawResult) -> TrialScore:
    """Return the values of the metrics; ``result`` says how the target gives its result."""
    found = TrialScore()
    document = None if "lines" in result else document_of(raw.result)
    for metric in metrics:
        series = [reading for reading in raw.readings if reading.metric == metric.name]
        if any(reading.n for reading in series):
            steady = steady_mean([reading.value for reading in series], [reading.n for reading in series])
            found.metrics[metric.name] = steady.mean
            if steady.error is not None:
                found.scatter[metric.name] = steady.error
            found.n = max(found.n, steady.kept)
            if not steady.settled:
                found.remark = f"{metric.name} may never have become steady: it still changed in the second half"
            continue
        try:
            found.metrics[metric.name] = _value(metric, raw, document)
        except ValueError as error:
            found.missing = found.missing or f"metric {metric.name}: {error}"
    return found


def _value(metric: StudyMetric, raw: RawResult, document: Any) -> float:
    """Return the value that a metric's source gives; ValueError says why there is none."""
    source = metric.source
    if source.get("wall"):
        return raw.wall_s
    if source.get("cpu"):
        return raw.cpu_s
    if source.get("memory"):
        return float(raw.memory_bytes)
    if "regex" in source:
        return matched_number(str(source["regex"]), raw.stdout + "\n" + raw.stderr)
    if "probe" in source:
        raise ValueError(raw.missing.get(metric.name, f"no records of probe {source['probe']} arrived"))
    if document is None:
        line = raw.result.strip().split("\n", 1)[0][:60]
        raise ValueError(f"the program printed no JSON{f' but {line!r}' if line else ', and nothing else'}")
    return number_at(document, str(source.get("path", "")))
