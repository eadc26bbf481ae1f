"""Laws: how a response depends on features, with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from perflaw.laws.printing import condition_text, learnt_text
from perflaw.laws.tree import Clause, Distribution, Expression, Part
from perflaw.types.documents import CALLABLE, MEASURED, OMITTED, stated
from perflaw.types.recordings import Component, Metric

Verdict = Literal["law", "inconclusive", "none"]
"""What a law claims: a dependence ("law"), that the data cannot say, or that nothing depends on the features."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How responses scatter about a law's mean."""

    distribution: Literal["normal", "lognormal", "exponential", "binomial"]
    """``normal``: additive, constant scale. ``lognormal``: multiplicative, constant relative scale.

    ``exponential`` and ``binomial``: of costs that depend on no input.
    """
    scale: float
    """Standard deviation of y (unit of y), under lognormal noise of log y (no unit)."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A law's answer at one point, with confidence intervals of two kinds."""

    features: Mapping[str, float]
    """Where the law is asked."""
    mean: float
    """Expected response there; never negative."""
    mean_low: float
    """Lower end of the interval for the mean."""
    mean_high: float
    """Upper end of the interval for the mean."""
    new_low: float
    """Lower end of the interval for one new run."""
    new_high: float
    """Upper end of the interval for one new run."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A law that the data cannot tell from the chosen one (its score is less than 2 worse)."""

    family: str
    """Name of its family."""
    expression: Distribution = field(metadata=stated(expression=learnt_text))
    """Distribution of responses, its arguments expressions of the features."""
    slope: Mapping[str, float]
    """Local exponent per feature at the upper end of the data."""
    delta: float
    """Difference of its score to the chosen law's, 0 to 2."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where one regime of a piecewise law ends and the next begins, with its confidence interval."""

    feature: str
    """Feature whose value decides."""
    value: float
    """The earlier regime holds up to it, the later one above."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


@dataclass(frozen=True, slots=True)
class Law:
    """How a response depends on features: mean expression, noise, intervals, and the evidence."""

    family: str
    """``constant``, ``linear``, ``nlogn``, ``quadratic``, ``power``, …"""
    expression: Distribution = field(metadata=stated(expression=learnt_text))
    """Distribution of responses, such as ``LogNorm(3.1*n*log(n), 0.05)``."""
    mean: Expression = field(metadata=stated(mean=learnt_text))
    """Their mean alone, such as ``3.1*n*log(n)``."""
    features: tuple[str, ...]
    """Features the mean depends on; empty for a constant law."""
    slope: Mapping[str, float]
    """d log y / d log x per feature at the upper end of the data: the local exponent."""
    slope_low: Mapping[str, float]
    """Lower ends of the slopes' confidence intervals, over all laws not told apart."""
    slope_high: Mapping[str, float]
    """Upper ends of the same."""
    noise: Noise
    """Scatter about the mean."""
    n: int
    """Points the law was learnt from."""
    runs: int
    """Independent runs among them (the replicates)."""
    r2: float | None
    """Share of the variance explained, on the scale of the noise; null where y does not vary."""
    verdict: Verdict
    """``law``, ``inconclusive`` or ``none`` (no dependence found)."""
    reason: str
    """Why it is inconclusive or none, and what to do; empty for a law."""
    exponent: float | None
    """Exponent of the leading term (1 for n log n, the fitted one for power, 0 for constant)."""
    log_exponent: float | None
    """Exponent of the logarithm in the leading term (1 for n log n)."""
    coefficient: float
    """Coefficient of the leading term (of the constant itself for a constant law), unit of y."""
    intercept: float | None
    """Intercept, unit of y; null where the law has none."""
    range: Mapping[str, tuple[float, float]]
    """Smallest and largest value of each feature in the data: what the law was learnt on."""
    alternatives: tuple[Alternative, ...] = ()
    """The laws the data cannot tell apart from this one."""
    predictions: tuple[Prediction, ...] = ()
    """Answers at 2 and 10 times the 95th percentile of the features, or where the person asked."""
    breakpoints: tuple[Breakpoint, ...] = ()
    """Where a piecewise law changes its regime, increasing; empty for other families."""
    segments: tuple[Law, ...] = ()
    """Laws of its regimes in the order of the feature, one more than breakpoints; empty for other families."""
    collinear: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Feature of the law → features that say the same in these data, so that it might be any of them."""
    lack_of_fit: float | None = None
    """p of the test that the law has the right shape; small: it has not. Null where the data cannot say."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A law drawn over a grid of one feature, for charts; every list has the same length."""

    feature: str
    """Feature on the x axis."""
    x: tuple[float, ...]
    """Grid, increasing."""
    mean: tuple[float, ...]
    """Expected response on the grid."""
    mean_low: tuple[float, ...]
    """Lower band of the mean."""
    mean_high: tuple[float, ...]
    """Upper band of the mean."""
    new_low: tuple[float, ...]
    """Lower band of a new run."""
    new_high: tuple[float, ...]
    """Upper band of a new run."""


# ---- Annotations: the laws of a component, where each holds, and the points behind them.


@dataclass(frozen=True, slots=True)
class Scope:
    """Part of an annotation: where it holds, how probable it is there, and its law."""

    condition: Expression | None = field(metadata=stated(condition=condition_text))
    """Where it holds; None for everywhere."""
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

    component: Component = field(metadata=CALLABLE)
    """The part of the program."""
    metric: Metric = field(metadata=MEASURED)
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
    curves: tuple[Curve, ...] = field(default=(), metadata=OMITTED)
    """The first scope's law drawn, one curve a feature in it."""
    points: Points | None = field(default=None, metadata=OMITTED)
    """The evidence, thinned for a page."""
    marks: tuple[str, ...] = ()
    """What was selected for its laws: ``noise removed``, ``main trend``; empty where all records count."""
    breakpoints: tuple[Breakpoint, ...] = field(default=(), metadata=OMITTED)
    """Where the regimes of a piecewise law part its scopes, with their intervals."""
    own_features: tuple[str, ...] = ()
    """Features of its calls that have the name, but not always the value, of a feature of the run."""

    @property
    def called_once(self) -> bool:
        """Whether it has one cost, that of a run, because each run calls it once: the law of a call is that of a run."""
        return self.run_law is not None and [scope.law for scope in self.scopes] == [self.run_law]

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """Its scopes as clauses of the annotation language: neighbours of one condition are the parts of a mixture."""
        return tuple(
            Clause(condition, tuple(Part(one.probability, one.law.expression) for one in scopes))
            for condition, scopes in groupby(self.scopes, key=lambda scope: scope.condition)
        )
