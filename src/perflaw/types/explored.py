"""What a study of configurations found: the best, how sure, what matters, the laws, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from perflaw.types.documents import OMITTED, stated
from perflaw.types.laws import Law
from perflaw.types.studies import Configuration, Study, StudyMetric, Trial, Value

_ESTIMATED = stated(metrics="value", intervals="interval")
"""Estimates by metric: their values, and their intervals beside them."""
WarningKind = Literal["hidden lock", "invalid", "contaminated", "stopped", "few", "null", "other"]
"""What a warning is about."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    """The estimate."""
    low: float
    """Lower end."""
    high: float
    """Upper end."""

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the interval."""
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class Tried:
    """A configuration that was tried, all its valid trials together."""

    configuration: Configuration
    """Its settings."""
    trials: tuple[int, ...]
    """Numbers of its valid trials."""
    metrics: Mapping[str, float]
    """Metric → mean of what was measured."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration that is recommended."""

    configuration: Configuration
    """Its settings; knobs that describe the workload are left out."""
    metrics: Mapping[str, Estimate] = field(metadata=_ESTIMATED)
    """Metric → what is expected of it, free of the luck that chose it."""
    measured: Mapping[str, float]
    """Metric → mean of its own trials; empty where it was not tried."""
    trials: tuple[int, ...]
    """Numbers of its valid trials."""
    margin: float = field(metadata=OMITTED)
    """Share that the probability speaks of: .05 for 5 %."""
    probability: float | None = field(metadata=OMITTED)
    """That no configuration of the space is better by more than the margin; None where the data cannot say."""
    why: str = ""
    """What it is best in, in words."""
    DOCUMENTED: ClassVar = ("within_margin",)

    @property
    def within_margin(self) -> dict[str, Any]:
        """The probability with the margin that it speaks of."""
        return {"margin": self.margin, "probability": self.probability}


@dataclass(frozen=True, slots=True)
class Share:
    """Part of a metric's variance over the space that knobs explain together, beyond what fewer of them do."""

    knobs: tuple[str, ...]
    """One knob, or two that interact."""
    share: float
    """Part of the variance over the space, 0 to 1."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end."""
    sure: bool
    """Whether the data establish that it is there at all."""


@dataclass(frozen=True, slots=True)
class Importance:
    """What a metric's variance over the whole space is made of (functional ANOVA)."""

    metric: str
    """Name of the metric."""
    logarithm: bool
    """Whether it is the variance of the metric's logarithm."""
    shares: tuple[Share, ...]
    """Knobs and pairs of them, the greatest first; empty where nothing depends on the knobs."""
    rest: float
    """Part of it that takes three knobs or more."""
    noise: float
    """Standard deviation of repeated trials: of the logarithm, or in the metric's unit."""
    p: float
    """Of the test that the metric depends on no knob at all; not a number where too little was tried for it."""
    exact: bool
    """Whether every combination of levels was tried, so that nothing was interpolated."""
    reason: str = ""
    """Why there are no shares; empty where there are."""


@dataclass(frozen=True, slots=True)
class MetricLaw:
    """A metric's law over knobs and features of the workload."""

    metric: StudyMetric
    """The metric."""
    law: Law
    """Its law; categorical knobs are columns ``knob=value`` of 0 and 1."""


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A configuration than which none is better in every metric with a goal."""

    configuration: Configuration
    """Its settings."""
    metrics: Mapping[str, Estimate] = field(metadata=_ESTIMATED)
    """What is expected of it."""
    trials: tuple[int, ...]
    """Numbers of its valid trials."""
    probability: float
    """That no other configuration tried is better in every metric."""


@dataclass(frozen=True, slots=True)
class Surface:
    """A metric over two knobs, for each setting of a third: the paper's Figure 3."""

    metric: str
    """The metric."""
    x: str
    """Knob across."""
    y: str
    """Knob upwards."""
    facet: str
    """Knob of the single maps; empty where there is one map."""
    x_values: tuple[Value, ...]
    """Levels across, increasing."""
    y_values: tuple[Value, ...]
    """Levels upwards."""
    facet_values: tuple[Value, ...]
    """Setting of each map; one empty text where there is one map."""
    measured: tuple[tuple[tuple[float | None, ...], ...], ...]
    """Map → y → x: mean of the trials there, other knobs whatever they were; None where there are none."""
    expected: tuple[tuple[tuple[float | None, ...], ...], ...]
    """The same of what is expected, other knobs as in the best configuration; None where the data cannot say."""
    numbers: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    """The same of the trials' numbers."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know before acting on the result."""

    kind: WarningKind
    """What it is about."""
    words: str
    """What was seen, and what to do."""
    trials: tuple[int, ...] = ()
    """Numbers of the trials it is about."""


@dataclass(frozen=True, slots=True)
class Explored:
    """The result of a study."""

    study: Study = field(metadata=stated(study="name", digest="digest", policy="policy"))
    """What was explored."""
    trials: tuple[Trial, ...]
    """All trials in their order, planned ones included."""
    objective: StudyMetric | None
    """The metric that best is told by: the first with a goal; None where none has one."""
    tried: tuple[Tried, ...] = field(default=(), metadata=OMITTED)
    """Configurations with a valid trial, the best first."""
    best: Choice | None = None
    """The best configuration; None where there is no valid trial or no goal."""
    robust: Choice | None = None
    """The one whose worst case is best: over the workload's settings, and in an unlucky run."""
    pareto: tuple[FrontPoint, ...] = ()
    """The front, where two metrics or more have goals."""
    importance: tuple[Importance, ...] = ()
    """Of each metric, the objective first."""
    laws: tuple[MetricLaw, ...] = field(default=(), metadata=OMITTED)
    """Of each metric, the objective first."""
    surface: Surface | None = None
    """The objective over the two knobs that matter most together."""
    notices: tuple[Notice, ...] = field(default=(), metadata=stated(warnings=""))
    """Warnings, the gravest first."""
    unfinished: bool = False
    """Whether trials are still to come."""
    ended: str = ""
    """Why the study is over, in words."""
    left: Mapping[str, float] = field(default_factory=dict)
    """What is left of the budget: ``trials``, ``minutes``."""
