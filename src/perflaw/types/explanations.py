"""Why one function is sometimes slow: what the learner of variance returns of it.

Source: Kumar & Pande, "Dominant Variance Characterization"; section numbers are the paper's. Costs are in the metric's unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from perflaw.types.deadlines import Bound, Deadline
from perflaw.types.measured import Component, Metric

Mechanism = Literal["trip count", "cost per call", "called or not", "own code"]
"""What of a part varies."""
Cause = Literal["work", "interference", "steady", "unknown"]
"""Whether a function's time varies by what it does, or while it is off the CPU."""
Relation = Literal["alone", "cancel", "in step", "mixed"]
"""How parts vary together."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a path: who calls, from where, whom."""

    caller: str
    """Component that calls; empty outside any."""
    line: int
    """Source line of the call, 0 where unknown."""
    site: int
    """Call site within the caller's code."""
    callee: str
    """Component that is called."""


@dataclass(frozen=True, slots=True)
class Split:
    """Var(Y) of a part taken apart; the three add up to it, each at least 0."""

    called: float
    """Because it is not always called."""
    trips: float
    """Because it is called different numbers of times."""
    cost: float
    """Because a call does not always cost the same."""

    @property
    def mechanism(self) -> Mechanism:
        """The largest of the three, in words."""
        largest = max(self.called, self.trips, self.cost)
        if largest == self.cost:
            return "cost per call"
        return "trip count" if largest == self.trips else "called or not"


@dataclass(frozen=True, slots=True)
class Part:
    """A call site of a function, or its own code: Y_i of Equation 1."""

    component: Component | None
    """The callee; None for the function's own code."""
    line: int
    """Source line of the call, 0 where unknown."""
    site: int
    """Call site within the function's code; -1 for own code."""
    mean: float
    """Mean of Y over all invocations of the function."""
    variance: float | None
    """Var(Y); None where it was not recorded."""
    cf_self: float | None
    """Var(Y)/Var(X); may exceed 1, and is None where it was not recorded."""
    cf_net: float
    """Cov(Y, X)/Var(X); adds up to 1 over the parts."""
    split: Split | None
    """What of it varies; None for own code."""


@dataclass(frozen=True, slots=True)
class Block:
    """Parts that vary together: joined where 2|Cov| is at least a tenth of the variance."""

    parts: tuple[int, ...]
    """Places in the function's parts."""
    variance: float
    """Variance of their sum."""
    cf_net: float
    """Their share of the function's variance together."""
    minimal: tuple[int, ...] | None
    """The smallest subset with nearly the block's variance; None where the block has no tenth of the function's."""
    relation: Relation = "alone"
    """How its members vary."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """What one call path adds to a slow invocation, against one near the median."""

    component: Component
    """Where the path ends; the function itself for its own code."""
    path: tuple[Step, ...]
    """Calls from the function to there; empty for own code."""
    tail: float
    """E[Y | X at least its 99th percentile]."""
    median: float
    """E[Y | X near its median]."""
    share: float
    """Part of the difference of X; the rows add up to 1."""
    share_low: float | None
    """95 % bootstrap interval, None where it could not be drawn."""
    share_high: float | None
    """Its upper end."""
    off_cpu: float | None
    """Part of the difference of X that this row spends off the CPU; None where CPU time is not known."""
    cf_net: float
    """Share of the variance."""
    mechanism: Mechanism
    """What of it varies."""
    estimated: bool = False
    """Whether it comes from covariances: samples hold the costs of direct callees alone, and those of time and CPU time."""
    rest: bool = False
    """Whether paths that go further through the same call stand apart."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the time of a slow invocation goes; the rows add up to ``tail - median``."""

    tail: float
    """E[X | X at least its 99th percentile]."""
    median: float
    """E[X | X near its median]."""
    p99: float
    """The 99th percentile of X."""
    p50: float
    """The median of X."""
    samples: int
    """Sampled invocations in the tail."""
    rows: tuple[BudgetRow, ...]
    """The parts, the largest first."""
    further: Mapping[str, float] = field(default_factory=dict)
    """Further metric in ns (gc, lock_wait) → its share of the difference; part of the rows, not beside them."""


@dataclass(frozen=True, slots=True)
class Context:
    """The same function in one calling context."""

    path: tuple[Step, ...]
    """Calls from the start of the program."""
    n: int
    """Invocations."""
    mean: float
    """Mean cost."""
    cov: float
    """σ over the mean."""
    high: bool
    """Whether it varies highly there."""


@dataclass(frozen=True, slots=True)
class Source:
    """A function somewhere below that underlies the variance."""

    path: tuple[Step, ...]
    """Calls from the function to it."""
    component: Component
    """Where the variance comes from."""
    mean: float
    """Mean of its cost Y over all invocations of the function."""
    cf_self: float | None
    """Var(Y)/Var(X)."""
    cf_net: float
    """Its share of the variance."""
    split: Split
    """What of it varies."""


@dataclass(frozen=True, slots=True)
class Callee:
    """What a sampled invocation did in one callee."""

    component: Component | None
    """The callee; None for callees that are not kept apart."""
    line: int
    """Source line of the call."""
    k: int
    """Calls."""
    y: float
    """Cost of them; NaN where samples do not say."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A sampled invocation to look at."""

    reason: Literal["worst", "random"]
    """Why it was chosen."""
    run: str
    """Id of its run."""
    sequence: int
    """Order of completion within the run."""
    started: int
    """Start, ns since the run's first event."""
    x: float
    """Cost in the metric."""
    time: float
    """Wall time, ns."""
    cpu: float
    """Its part on the CPU; NaN where unknown."""
    path: tuple[Step, ...]
    """Calls that led to it."""
    callees: tuple[Callee, ...]
    """Its direct callees, the dearest first."""
    features: Mapping[str, float]
    """Numbers read at its entry."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A feature that a varying part follows."""

    feature: str
    """Name of the argument's feature."""
    of: str
    """What follows it: calls of a callee, or a cost, in words."""
    r2: float
    """Share of the variance of that which it explains."""
    expression: str
    """The law, in the annotation language; of few values the mean at each."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one function is sometimes slow, over all its contexts."""

    component: Component
    """The function."""
    metric: Metric
    """What was measured."""
    n: int
    """Completed invocations."""
    mean: float
    """Mean cost."""
    cov: float
    """σ over the mean."""
    high: bool
    """Whether that is high variance."""
    covs: Mapping[str, float]
    """Metric → coefficient of variation of the same invocations."""
    cause: Cause
    """Work or interference."""
    off_cpu: float | None
    """Share of the variance of the time that comes about off the CPU."""
    off_cpu_low: float | None
    """Its 95 % bootstrap interval."""
    off_cpu_high: float | None
    """The upper end."""
    parts: tuple[Part, ...]
    """Its call sites and own code."""
    covariance: tuple[tuple[float | None, ...], ...]
    """C_ij of the parts, in their order; None where it was not recorded."""
    blocks: tuple[Block, ...]
    """Parts that vary together."""
    sources: tuple[Source, ...]
    """Underlying sources at any depth, the largest first."""
    budget: Budget | None
    """Slow against median; None without samples."""
    contexts: tuple[Context, ...]
    """Each calling context, highest variance impact first."""
    exemplars: tuple[Exemplar, ...]
    """Invocations to look at."""
    deadlines: tuple[Deadline, ...]
    """Deadlines asked for."""
    bounds: tuple[Bound, ...]
    """Deadlines for given probabilities."""
    drivers: tuple[Driver, ...] = ()
    """Features that the largest parts follow."""
