"""What a trial printed and used, as metrics. Pure functions of what is kept, so finished trials can be scored anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.explore.target.outputs import at_path, document_of, matched
from perflaw.types.studies import Reading, StudyMetric

# ---- Steady state told from transient: where the warm-up of a series ends, and what the rest says of the mean.
#
# The end of the warm-up is that of MSER (White, "An effective truncation heuristic for bias reduction in simulation
# output", Simulation 69(6), 1997): the point from which on the standard error of the mean is least. The error of the
# mean
# is that of the means of batches (Law & Kelton, §9.5.3), for values close in time are alike.

_BATCHES: Final = 10
_FEW: Final = 5
"""Of fewer values than this nothing is cut off."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The mean of a series from where it is steady."""

    mean: float
    """Mean of the values kept, weighted by their counts."""
    error: float | None
    """Its standard error; None of fewer than two values."""
    kept: int
    """Values kept."""
    warm: int
    """Values of the warm-up, which are left out."""
    settled: bool
    """Whether the warm-up ends before the middle; else the series may never have been steady."""


def steady(values: Sequence[float], weights: Sequence[float] | None = None) -> Steady:
    """The steady part of (n,) values, n ≥ 1; ``weights`` are the records that each is of.

    >>> found = steady([1, 2, 4, 9.9, 10, 10.1, 10, 9.9, 10, 10.1, 10, 9.9])
    >>> found.warm, round(found.mean, 2), found.settled
    (3, 9.99, True)
    """
    series = np.asarray(values, dtype=np.float64)
    counts = np.ones(len(series)) if weights is None else np.maximum(np.asarray(weights, dtype=np.float64), 1e-12)
    warm = warm_up(series)
    kept, counts = series[warm:], counts[warm:]
    mean = float(np.average(kept, weights=counts))
    return Steady(mean, _error(kept), len(kept), warm, len(series) < _FEW or 2 * warm < len(series) - 1)


def warm_up(series: NDArray[np.float64]) -> int:
    """How many values at the front of (n,) values are warm-up: at most half of them."""
    n = len(series)
    if n < _FEW:
        return 0
    left = np.arange(n, 0, -1)
    sums, squares = np.cumsum(series[::-1])[::-1], np.cumsum(np.square(series)[::-1])[::-1]
    spread = np.maximum(squares - sums**2 / left, 0) / np.square(left.astype(np.float64))
    return int(np.argmin(spread[: n // 2 + 1]))


def _error(values: NDArray[np.float64]) -> float | None:
    if len(values) < 2:
        return None
    batches = [part.mean() for part in np.array_split(values, min(_BATCHES, len(values)))]
    return float(np.std(batches, ddof=1) / np.sqrt(len(batches)))


@dataclass(frozen=True, slots=True)
class Raw:
    """All that a trial gave, before anything is made of it."""

    stdout: str = ""
    """What the program, or the workload, printed."""
    stderr: str = ""
    """What it said on standard error."""
    result: str = ""
    """Text of the result: standard output, or a file."""
    wall_s: float = 0.0
    """How long it ran."""
    cpu_s: float = 0.0
    """CPU time of it and of the target."""
    memory_bytes: int = 0
    """Most memory of them."""
    readings: tuple[Reading, ...] = ()
    """Values that came while it ran, in order."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Metric → why the probes say nothing of it."""


@dataclass(slots=True)
class Scored:
    """Metrics of a trial."""

    metrics: dict[str, float] = field(default_factory=dict)
    """Metric → value."""
    scatter: dict[str, float] = field(default_factory=dict)
    """Metric → standard error of it, where its readings tell."""
    n: int = 1
    """Readings that they are of; 1 where the result is one."""
    missing: str = ""
    """Why a metric has no value; empty if all have."""
    said: str = ""
    """What is to be said of them: that it never got steady."""


def score(metrics: Sequence[StudyMetric], result: Mapping[str, Any], raw: Raw) -> Scored:
    """The metrics of a trial."""
    scored = Scored()
    document = None if "lines" in result else document_of(raw.result)
    for metric in metrics:
        series = [reading for reading in raw.readings if reading.metric == metric.name]
        if any(reading.n for reading in series):
            _add_series(scored, metric.name, series)
            continue
        try:
            scored.metrics[metric.name] = _value(metric, raw, document)
        except ValueError as error:
            scored.missing = scored.missing or f"metric {metric.name}: {error}"
    return scored


def _add_series(scored: Scored, name: str, series: Sequence[Reading]) -> None:
    found = steady([one.value for one in series], [one.n for one in series])
    scored.metrics[name] = found.mean
    if found.error is not None:
        scored.scatter[name] = found.error
    scored.n = max(scored.n, found.kept)
    if not found.settled:
        scored.said = f"{name} may never have been steady: it still changed in the second half"


def _value(metric: StudyMetric, raw: Raw, document: Any) -> float:
    """The value that one source gives; ValueError says why there is none."""
    source = metric.source
    if source.get("wall"):
        return raw.wall_s
    if source.get("cpu"):
        return raw.cpu_s
    if source.get("memory"):
        return float(raw.memory_bytes)
    if "regex" in source:
        return matched(str(source["regex"]), raw.stdout + "\n" + raw.stderr)
    if "probe" in source:
        raise ValueError(raw.missing.get(metric.name, f"no records of probe {source['probe']} arrived"))
    if document is None:
        raise ValueError(f"the program printed no JSON{_beginning(raw.result)}")
    return at_path(document, str(source.get("path", "")))


def _beginning(text: str) -> str:
    line = text.strip().split("\n", 1)[0][:60]
    return f" but {line!r}" if line else ", and nothing else"
