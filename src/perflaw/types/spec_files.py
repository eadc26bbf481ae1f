"""A file of specifications: what was mined, from which runs, and how these runs differed."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.types.durations import Histogram
from perflaw.types.specs import Consistency, PathSpec


@dataclass(frozen=True, slots=True)
class Tally:
    """Calls of one group of call paths in one run."""

    run: str
    """Id of the run."""
    counts: tuple[int, ...]
    """Calls in each cluster."""
    worth: float
    """Independent calls that these are worth."""


@dataclass(frozen=True, slots=True)
class SpecRun:
    """A run that specifications were mined from."""

    id: str
    """Name within its experiment."""
    started: str
    """When it started, by which ``check`` knows it again; empty where unknown."""


@dataclass(frozen=True, slots=True)
class MinedSpec:
    """A specification with what the runs behind it showed."""

    spec: PathSpec
    """What was mined, or what a person made of it."""
    tallies: tuple[tuple[Tally, ...], ...] = ()
    """One tuple a group, in it the runs; empty where nothing is known of single runs."""
    histograms: tuple[Histogram, ...] = ()
    """Durations of each group's calls; empty where they were read from a file."""
    span_ns: tuple[int, int] = (0, 0)
    """Start of the first observation and end of the last, ns since 1970."""


@dataclass(frozen=True, slots=True)
class SpecFile:
    """Specifications of several functions."""

    specs: tuple[MinedSpec, ...]
    """In the order in which they are told: the dearest function first."""
    runs: tuple[SpecRun, ...] = ()
    """Runs they were mined from."""
    source: str = ""
    """As the person named it; empty for what was mined just now."""


@dataclass(frozen=True, slots=True)
class MergeStep:
    """One more model merged into those before it (RQ1, Figure 5)."""

    name: str
    """The run or file that was added."""
    found: tuple[Consistency, ...]
    """How far it agrees with what was merged before, function by function."""
    missing: tuple[str, ...] = ()
    """Functions that only one side has: gone, new or inlined; left out of the comparison."""
    unsettled: tuple[str, ...] = ()
    """Functions in which one side found no border, and so has no model (§3.4); left out of the comparison."""
