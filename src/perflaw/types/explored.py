"""The result of a study: the best configuration and how sure that is, what matters, the laws, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from perflaw.types.documents import OMITTED, stated
from perflaw.types.laws import Law
from perflaw.types.studies import Configuration, Study, StudyMetric, Trial, Value

_ESTIMATED = stated(metrics="value", intervals="interval")
"""Estimates by metric in a document: their values, and their intervals beside them."""
NoticeKind = Literal["hidden lock", "invalid", "contaminated", "stopped", "few", "null", "unverified", "other"]
"""Subject of a notice."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    """The estimate."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the interval."""
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class TriedConfiguration:
    """A configuration that was tried, with all of its valid trials."""

    configuration: Configuration
    """Its settings."""
    trials: tuple[int, ...]
    """Numbers of its valid trials."""
    metrics: Mapping[str, float]
    """Mean of the measured values, by metric."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration that is recommended."""

    configuration: Configuration
    """Its settings, without the knobs that describe the workload."""
    metrics: Mapping[str, Estimate] = field(metadata=_ESTIMATED)
    """Expected value by metric, free of the luck of the trials that were selected."""
    measured: Mapping[str, float]
    """Mean of its own trials by metric; empty where it was not tried."""
    trials: tuple[int, ...]
    """Numbers of its valid trials."""
    margin: float = field(metadata=OMITTED)
    """Margin of the probability, as a share: 0.05 for 5 %."""
    probability: float | None = field(metadata=OMITTED)
    """Probability that no configuration of the space is better by more than the margin; None where the data cannot say."""
    why: str = ""
    """In which respect it is the best, in words."""
    DOCUMENTED: ClassVar = ("within_margin",)

    @property
    def within_margin(self) -> dict[str, Any]:
        """The probability together with its margin."""
        return {"margin": self.margin, "probability": self.probability}


@dataclass(frozen=True, slots=True)
class VarianceShare:
    """Part of a metric's variance over the space that knobs explain together, beyond what fewer of them explain."""

    knobs: tuple[str, ...]
    """One knob, or two that interact."""
    share: float
    """Part of the variance over the space, 0 to 1."""
    low: float
    """Lower end of its confidence interval."""
    high: float
    """Upper end of its confidence interval."""
    sure: bool
    """Whether the data establish that the share is above zero."""


@dataclass(frozen=True, slots=True)
class Importance:
    """Decomposition of a metric's variance over the whole space by knobs (functional ANOVA)."""

    metric: str
    """Name of the metric."""
    logarithm: bool
    """Whether it is the variance of the metric's logarithm."""
    shares: tuple[VarianceShare, ...]
    """Shares of knobs and of pairs of knobs, the largest first; empty where no dependence on the knobs is established."""
    rest: float
    """Share of the variance that takes three knobs or more."""
    noise: float
    """Standard deviation of repeated trials: of the logarithm, or in the metric's unit; not a number where none is repeated."""
    p: float
    """P-value of the hypothesis that the metric depends on no knob; not a number where too few configurations were tried."""
    exact: bool
    """Whether every combination of levels was tried, so that nothing is interpolated."""
    reason: str = ""
    """Why there are no shares; empty where there are."""


@dataclass(frozen=True, slots=True)
class MetricLaw:
    """A metric's law over knobs and features of the workload."""

    metric: StudyMetric
    """The metric."""
    law: Law
    """Its law; a setting of a categorical knob is a feature ``knob=value``, 0 or 1."""


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A point of the Pareto front: no other configuration is better in every metric with a goal."""

    configuration: Configuration
    """Its settings."""
    metrics: Mapping[str, Estimate] = field(metadata=_ESTIMATED)
    """Expected value by metric."""
    trials: tuple[int, ...]
    """Numbers of its valid trials."""
    probability: float
    """Probability that no other configuration tried is better in every metric."""


@dataclass(frozen=True, slots=True)
class Surface:
    """A metric over two knobs, one map for each setting of a third knob (Figure 3 of the SPEX paper)."""

    metric: str
    """Name of the metric."""
    x: str
    """Knob of the horizontal axis."""
    y: str
    """Knob of the vertical axis."""
    facet: str
    """Knob whose settings have a map each; empty where there is one map."""
    x_values: tuple[Value, ...]
    """Levels of the horizontal axis, increasing."""
    y_values: tuple[Value, ...]
    """Levels of the vertical axis, increasing."""
    facet_values: tuple[Value, ...]
    """Setting of each map; one empty text where there is one map."""
    measured: tuple[tuple[tuple[float | None, ...], ...], ...]
    """Mean of the trials in each cell (map, y, x), over all settings of the other knobs; None where there are no trials."""
    expected: tuple[tuple[tuple[float | None, ...], ...], ...]
    """Expected value in each cell (map, y, x), with the other knobs as in the best configuration; None for invalid cells."""
    numbers: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    """Numbers of the trials in each cell (map, y, x)."""


@dataclass(frozen=True, slots=True)
class KnobCurve:
    """What is expected of a metric along one knob, with the other knobs as in the best configuration."""

    metric: str
    """Name of the metric."""
    knob: str
    """Name of the knob."""
    values: tuple[Value, ...]
    """Settings of the knob that are allowed, in its order."""
    expected: tuple[Estimate, ...]
    """Expected value at each of them, with the credible interval of that mean."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know before acting on the result."""

    kind: NoticeKind
    """Subject of the notice."""
    words: str
    """What was observed, and what to do."""
    trials: tuple[int, ...] = ()
    """Numbers of the trials that it is about."""


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What the trials of a study show."""

    study: Study = field(metadata=stated(study="name", digest="digest", policy="policy"))
    """The study."""
    trials: tuple[Trial, ...]
    """All trials in their order, with those that are only planned."""
    objective: StudyMetric | None
    """The first metric with a goal; None where no metric has one."""
    tried: tuple[TriedConfiguration, ...] = field(default=(), metadata=OMITTED)
    """Configurations with a valid trial, the best first."""
    best: Choice | None = None
    """The best configuration; None where there is no valid trial or no goal."""
    robust: Choice | None = None
    """The configuration whose worst case is best, over the settings of the workload and in an unlucky run."""
    pareto: tuple[FrontPoint, ...] = ()
    """The Pareto front, where two metrics or more have goals."""
    importance: tuple[Importance, ...] = ()
    """Importance of the knobs for each metric, the objective first."""
    laws: tuple[MetricLaw, ...] = field(default=(), metadata=OMITTED)
    """Law of each metric, the objective first."""
    surface: Surface | None = None
    """The objective over the two ordered knobs that matter most."""
    curves: tuple[KnobCurve, ...] = field(default=(), metadata=OMITTED)
    """Each metric along each knob, the objective first."""
    notices: tuple[Notice, ...] = field(default=(), metadata=stated(warnings=""))
    """Warnings, the most serious first."""
    unfinished: bool = False
    """Whether trials are still to come."""
    ended: str = ""
    """Why the study ended, in words."""
    left: Mapping[str, float] = field(default_factory=dict)
    """What is left of the budget: ``trials``, ``minutes``."""
