"""Annotations: the laws of a component, where each holds, and the points behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perflaw.types.laws import Breakpoint, Curve, Law, Prediction
from perflaw.types.measured import Component, Metric


@dataclass(frozen=True, slots=True)
class Scope:
    """Part of an annotation: where it holds, how probable it is there, and its law."""

    condition: str
    """Condition in the annotation language; empty for everywhere."""
    probability: float
    """Share of invocations within the condition that follow this law."""
    law: Law
    """The law."""


@dataclass(frozen=True, slots=True)
class Points:
    """The evidence behind an annotation, for charts; every list has the same length."""

    features: Mapping[str, tuple[float | None, ...]]
    """Value of every feature at each point, null where it was not read."""
    y: tuple[float, ...]
    """Response."""
    run: tuple[str, ...]
    """Run each point comes from."""
    residual: tuple[float | None, ...]
    """y − mean (normal noise) or log y − log mean (lognormal noise) of the first scope's law."""
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Text of every categorical feature at each point (``x.type``), "" where it was not read."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A component × metric with its law or laws, and its place in the ranking."""

    component: Component
    """The part of the program."""
    metric: Metric
    """What was measured."""
    features: tuple[str, ...]
    """All features that were read of it."""
    scopes: tuple[Scope, ...]
    """Its laws; one scope where a single law holds everywhere."""
    calls: int
    """Completed invocations in all recordings."""
    total: int
    """Summed cost over all recordings, recursion counted once, unit of the metric."""
    share: float
    """Part of the recordings' whole cost spent in it, callees included, 0 to 1."""
    self_share: float
    """The same without callees that are components themselves."""
    run_law: Law | None = None
    """Cost per run as a law of the workload's features: what ``--at n=…`` is answered by."""
    predicted: Prediction | None = None
    """Cost of a whole run at ``--at``, null where the law does not reach there."""
    curves: tuple[Curve, ...] = ()
    """The first scope's law drawn, one curve a feature in it."""
    points: Points | None = None
    """The evidence, thinned for a page."""
    marks: tuple[str, ...] = ()
    """What was selected for its laws: ``noise removed``, ``main trend``; empty where all records count."""
    breakpoints: tuple[Breakpoint, ...] = ()
    """Where the regimes of a piecewise law part its scopes, with their intervals."""
