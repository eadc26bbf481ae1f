"""How annotations are learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perflaw.types import TIME, Metric


def ignore(part: float) -> None:
    """Tell nobody how far the work is."""


@dataclass(frozen=True, slots=True)
class AnnotationOptions:
    """The metric, and the parameters of Algorithms 1 and 2 that Freud §3.2 leaves open."""

    metric: Metric = TIME
    """The metric of the costs."""
    quantum: float = 1.0
    """Smallest step of the metric (of time: the clock's tick in ns)."""
    resolution: float = 0.0
    """Smaller differences between single calls come from the measurement, in the unit of the metric (0: unknown)."""
    good_r2: float = 0.9
    """R² from which on a law is good, so that its records are not split."""
    p: float = 0.01
    """Error probability of a split, over all candidates (Holm 1979: the best of m candidates must reach p / m)."""
    fewest: int = 20
    """Smallest number of records on a side of a split."""
    depth: int = 6
    """Largest number of comparisons in a condition."""
    calls: bool = True
    """Look for the laws of a call also where a component has a law of runs."""
    least_share: float = 0.0
    """Look for them only in components with this share of the cost, and in the costliest, as a table shows no others."""
    paper: bool = False
    """Follow the paper wherever perflaw differs from it."""
    progress: Callable[[float], None] = ignore
    """Called with the part of the work that is done, up to 1; parts come again where learning together failed."""
