"""What a trial printed and used, as metrics. Pure functions of what is kept, so finished trials can be scored anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perflaw.explore.target.outputs import at_path, document_of, matched
from perflaw.explore.target.steady import steady
from perflaw.types.studies import Reading, StudyMetric


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
