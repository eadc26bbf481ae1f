"""Patterns of variance: what the learner of variance returns of a whole program.

Source: Kumar & Pande, "Dominant Variance Characterization"; section numbers are the paper's. Costs are in the metric's unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from perflaw.types.documents import MEASURED, NAMED, OMITTED, PLACED, stated
from perflaw.types.recordings import Component, Metric

# ---- Soft real-time figures of a function (Kumar & Pande, §8.1).


@dataclass(frozen=True, slots=True)
class Deadline:
    """How often invocations take longer than a deadline (§8.1)."""

    deadline: float
    """The deadline, ns."""
    chebyshev: float
    """At most this part of invocations exceeds it, whatever the distribution: 1/t² at t = (deadline − mean)/σ."""
    observed: float
    """Part of the recorded invocations that exceeded it."""
    low: float
    """Confidence interval of the probability."""
    high: float
    """Its upper end."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The deadline that a given part of invocations exceeds."""

    probability: float
    """P(time > deadline)."""
    chebyshev: float
    """Deadline that is exceeded with at most this probability, whatever the distribution: μ(1 + γ/√p)."""
    observed: float | None
    """The same as recorded; None where too few invocations say."""
    low: float | None
    """Confidence interval by order statistics."""
    high: float | None
    """Its upper end; None where even the slowest does not bound it."""


# ---- Why one function is sometimes slow: what the learner of variance returns of it.
#
# Source: Kumar & Pande, "Dominant Variance Characterization"; section numbers are the paper's. Costs are in the
# metric's unit.

Mechanism = Literal["trip count", "cost per call", "called or not", "own code"]
"""What of a part varies."""
Cause = Literal["work", "waiting", "interference", "steady", "unknown"]
"""Whether a function's time varies by what it does, by what it waits for, or because others had the CPU."""
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
    callee: str = field(metadata=stated(component=""))
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
    DOCUMENTED: ClassVar = ("mechanism",)

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

    component: Component | None = field(metadata=NAMED)
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

    component: Component = field(metadata=NAMED)
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
    """Bootstrap interval, None where it could not be drawn."""
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
    rows: tuple[BudgetRow, ...] = field(metadata=OMITTED)
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
    component: Component = field(metadata=NAMED)
    """Where the variance comes from."""
    mean: float = field(metadata=OMITTED)
    """Mean of its cost over all invocations of the function, without the sources below it."""
    cf_self: float | None
    """Var(Y)/Var(X)."""
    cf_net: float
    """Its share of the variance, without that of the sources below it."""
    split: Split
    """What of it varies."""


@dataclass(frozen=True, slots=True)
class Callee:
    """What a sampled invocation did in one callee."""

    component: Component | None = field(metadata=NAMED)
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
    """The law, in the annotation language; empty where the feature has too few values for a law."""
    unit: str
    """Unit of what follows the feature; empty for calls."""
    means: tuple[tuple[float, float], ...]
    """Values of the feature, rising, and the mean at each: at its 5th, 50th and 95th percentile, or at each of few values."""


@dataclass(frozen=True, slots=True)
class Await:
    """What a coroutine or an async generator awaits."""

    component: Component | None = field(metadata=NAMED)
    """The coroutine or async generator that it awaits; None for all other awaits."""
    line: int
    """Source line of the call, 0 where unknown."""
    mean: float
    """Mean time that one call of the function spends suspended in it, ns."""
    share: float
    """Share of the variance of the latency, as if awaits did not depend on each other."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a coroutine takes from its call to its result, the time in suspension included.

    Of an async generator it is how long it takes to produce all that its consumer takes of it, without the time in which
    the consumer has a value.
    """

    mean: float
    """Mean latency, ns."""
    cov: float
    """σ over the mean."""
    high: bool
    """Whether that is high variance."""
    p50: float
    """The median."""
    p99: float
    """The 99th percentile."""
    awaiting: float
    """Share of the variance that comes about in suspension; the rest is the coroutine's own time."""
    awaits: tuple[Await, ...]
    """What it awaits, the largest share first."""


@dataclass(frozen=True, slots=True)
class VaryingLatency:
    """A coroutine or async generator whose latency varies highly, over all its contexts."""

    component: Component = field(metadata=PLACED)
    """The function."""
    n: int
    """Completed invocations."""
    impact: float
    """σ of the latency times the number of invocations, ns."""
    latency: Latency
    """Its latency."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one function is sometimes slow, over all its contexts."""

    component: Component = field(metadata=PLACED)
    """The function."""
    metric: Metric = field(metadata=OMITTED)
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
    """Work, waiting or interference."""
    off_cpu: float | None
    """Share of the variance of the time that comes about off the CPU."""
    off_cpu_low: float | None
    """Its bootstrap interval."""
    off_cpu_high: float | None
    """The upper end."""
    off_for: Mapping[str, float]
    """Reason (``queued``, ``sleep``, ``lock``, …) → share of the variance; they add up to ``off_cpu``. Empty if unknown."""
    parts: tuple[Part, ...]
    """Its call sites and own code."""
    covariance: tuple[tuple[float | None, ...], ...]
    """C_ij of the parts, in their order; None where it was not recorded."""
    blocks: tuple[Block, ...]
    """Parts that vary together."""
    sources: tuple[Source, ...]
    """Underlying sources at any depth, the largest first."""
    budget: Budget | None = field(metadata=stated(tail=""))
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
    latency: Latency | None = None
    """Of a coroutine or async generator by wall time: its latency, which deadlines and bounds are of; all else is of the
    time in its code."""
    tracing_ns: float | None = None
    """Mean time that recording takes within an invocation, ns, where that hides whether the cost varies; None elsewhere."""


Kind = Literal["Task", "Contributor", "Contrast"]
"""Task: high variance is principally observed here. Contributor: steady, and the source of another's. Contrast: the rest."""


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node of a pattern: one or more calling contexts of a function that behave alike (§5)."""

    id: int
    """Number, unique among all patterns of a result; depth first, most important first."""
    parent: int | None
    """Id of the node it lies under; None for the root of a pattern."""
    component: Component = field(metadata=PLACED)
    """The function."""
    kind: Kind = field(metadata=stated(type=""))
    """What it is in the pattern."""
    n: int
    """Invocations."""
    mean: float
    """Mean cost of one."""
    cov: float
    """Coefficient of variation, σ over the mean."""
    weight: float
    """Cost of all, N·mean."""
    vim: float
    """Variance impact σ·N, summed over the node and all below it."""
    contexts: tuple[tuple[Step, ...], ...]
    """Paths of calls that lead here from the node's parent, or from the start of the program."""
    cause: Cause = "unknown"
    """Whether its time varies by work, by waiting or by interference."""
    off_cpu: float | None = None
    """Share of the variance that comes about off the CPU; None where it is not known."""
    off_for: Mapping[str, float] = field(default_factory=dict)
    """Reason (``queued``, ``sleep``, ``lock``, …) → share of the variance; they add up to ``off_cpu``. Empty if unknown."""

    @property
    def figures(self) -> dict[str, Any]:
        """The figures by which two recordings of a pattern are compared."""
        return {"type": self.kind, "n": self.n, "mean": self.mean, "cov": self.cov, "vim": self.vim}


@dataclass(frozen=True, slots=True)
class Contribution:
    """A back-edge: the variance of the node ``to`` comes from ``source`` (§3.1, §6.1)."""

    to: int
    """Id of the node whose variance is explained."""
    source: int = field(metadata=stated(**{"from": ""}))
    """Id of the node that underlies it."""
    path: tuple[int, ...] = field(metadata=stated(segment=""))
    """Ids of the linear segment, both ends included."""
    cf_self: float | None
    """Var(Y)/Var(X), Y being the cost of ``source`` in an invocation of ``to``; None where a product was not recorded."""
    cf_net: float
    """Cov(Y, X)/Var(X): the share of the variance, without that of sources below ``source``."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A tree of nodes with back-edges (§5). Nodes stand depth first, the root in front."""

    nodes: tuple[PatternNode, ...]
    """Nodes, those of greater VIM first."""
    contributions: tuple[Contribution, ...]
    """Back-edges, the largest share of each node first."""
    DOCUMENTED: ClassVar = ("root",)

    @property
    def root(self) -> str:
        """Name of the root's component."""
        return self.nodes[0].component.name


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a program: its patterns, most important first, and the explanation of one function."""

    metric: Metric = field(metadata=MEASURED)
    """What was measured."""
    patterns: tuple[Pattern, ...]
    """Merged, ordered and trimmed patterns."""
    extracted: tuple[int, int] = field(metadata=OMITTED)
    """Nodes and patterns before merging."""
    merged: tuple[int, int] = field(metadata=OMITTED)
    """Nodes and patterns before trimming."""
    tree_nodes: int = field(metadata=OMITTED)
    """Calling contexts."""
    too_few: int = field(metadata=OMITTED)
    """Calling contexts with fewer invocations than a label needs."""
    explanation: Explanation | None = field(default=None, metadata=stated(function=""))
    """Of the function asked for, else of the first of the latencies, else of the first pattern's root; None where nothing
    varies highly."""
    notes: tuple[str, ...] = ()
    """What is missing or uncertain."""
    latencies: tuple[VaryingLatency, ...] = ()
    """By wall time: coroutines whose latency varies highly, the greatest impact first. Patterns are of time in their code."""
    DOCUMENTED: ClassVar = ("counts", "budget")

    @property
    def counts(self) -> dict[str, Any]:
        """Numbers of calling contexts, and of nodes and patterns at each step."""
        shown = sum(len(pattern.nodes) for pattern in self.patterns), len(self.patterns)
        steps = {"extracted": self.extracted, "merged": self.merged, "shown": shown}
        sizes = {step: {"nodes": nodes, "patterns": patterns} for step, (nodes, patterns) in steps.items()}
        return {"tree": self.tree_nodes, "too_few": self.too_few, **sizes}

    @property
    def budget(self) -> tuple[BudgetRow, ...]:
        """Rows of the budget of the function explained; empty without one."""
        explained = self.explanation
        return explained.budget.rows if explained and explained.budget else ()


@dataclass(frozen=True, slots=True)
class ShareChange:
    """A back-edge in two recordings."""

    path: tuple[str, ...] = field(metadata=stated(segment=""))
    """Components of the linear segment, from the one whose variance it is to where it comes from."""
    old: float | None
    """cf_net before; None where there was no such edge."""
    new: float | None
    """cf_net now; None where there is none any more."""


@dataclass(frozen=True, slots=True)
class PatternChange:
    """A pattern in two recordings: patterns are the same where their roots are one function in the same role."""

    component: Component = field(metadata=NAMED)
    """Function of the root."""
    what: Literal["appeared", "went", "changed", "stays"]
    """What became of it."""
    old: PatternNode | None = field(metadata=stated(old="figures"))
    """Its root before."""
    new: PatternNode | None = field(metadata=stated(new="figures"))
    """Its root now."""
    shares: tuple[ShareChange, ...]
    """Back-edges that appeared, went, or have another share; of a pattern that appeared or went, those of its root."""
