"""The nouns: frozen, typed, one line of documentation a field. Imports nothing of ours.

A recording is evidence, a law is a claim with its uncertainty. Learners return these and never print.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Verdict = Literal["law", "inconclusive", "none"]
"""What a law claims: a dependence ("law"), that the data cannot say, or that nothing depends on the features."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the program whose cost is measured."""

    name: str
    """Qualified name, ``package.module.Class.function``."""
    file: str = ""
    """Source file, empty where there is none."""
    line: int = 0
    """First line of its definition, 0 where unknown."""
    language: str = "python"
    """Language it is written in."""
    origin: Literal["own", "library"] = "own"
    """The person's own code, or the standard library and installed packages."""
    parameters: tuple[str, ...] = ()
    """Names of its parameters, in order."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured of an invocation."""

    name: str
    """Name on the command line and in documents: ``time``."""
    unit: str
    """Unit of its values: ``ns``."""


TIME = Metric("time", "ns")
"""Wall time of an invocation, the tracer's own time taken out."""
CPU = Metric("cpu", "ns")
"""The part of it in which the invocation's thread was on a CPU."""
EVENTS = Metric("events", "calls")
"""Recorded calls: the invocation itself and all below it."""


MOST_SLOWDOWN = 100.0
"""Slowdowns from here on are not told apart."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock a run was measured with, and what measuring cost."""

    name: str
    """``perf_counter`` or ``fake``."""
    tick_ns: int
    """Smallest step it can show."""
    event_ns: int
    """Calibrated cost of a call event outside the tracer's own clock reads, taken out of every open frame."""
    own_ns: int
    """All time the tracer took out of the run."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What a recording does not contain, counted."""

    open_invocations: int = 0
    """Invocations that had not ended when the recording did; they give no sample."""
    missed_calls: int = 0
    """Calls that no record was made of: at the recursion limit, or for want of memory."""
    library_functions: int = 0
    """Functions of libraries that only libraries called: left out by default."""
    unselected_functions: int = 0
    """Functions left out by ``--select`` and ``--exclude``."""
    reason: str = ""
    """Why the recording stopped before the program did; empty if it did not."""
    folded_calls: int = 0
    """Calls from further contexts than are kept apart: put together by function."""
    unlinked: int = 0
    """How often a descendant's part in an invocation was not kept, because there were too many pairs of the two."""


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run of a target: the manifest beside its tables."""

    id: str
    """Name of the run within its experiment, such as ``0001``."""
    command: tuple[str, ...]
    """What was run, secrets masked."""
    target: str
    """Short name of what was run: ``app.py``."""
    features: Mapping[str, float]
    """Features of the whole run: ``--vary`` values, argument numbers, sizes of files, declared ones."""
    started: str
    """Start, UTC, ISO 8601."""
    wall_ns: int
    """Wall time of the target's process as the person felt it."""
    span_ns: int
    """Wall time from first to last event, the tracer's own time taken out."""
    status: int
    """Exit status of the target, 128 + signal when it was killed."""
    complete: bool
    """Whether the program ended by itself with status 0 and every record arrived."""
    ended: str
    """How it ended, in words."""
    tracer: str
    """Which tracer recorded it, and why that one."""
    python: str
    """Version of the target's interpreter."""
    clock: Clock
    """The clock and its cost."""
    lost: Losses
    """What is missing."""
    host: str
    """Machine it ran on."""
    environment: Mapping[str, str]
    """Environment variables of the allow-list."""
    configuration: Mapping[str, str]
    """What was asked of the recorder: values of ``--vary``, selection, clock."""
    calls: int
    """Completed invocations."""
    functions: int
    """Functions recorded."""
    nodes: int
    """Nodes of its call tree."""
    metrics: tuple[Metric, ...] = (TIME, EVENTS)
    """What was measured of every invocation."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What the tracer says of its measurements, by topic: ``clock``, ``cpu``, ``tracer``."""
    pid: int = 0
    """Process id of the target, 0 where the tracer does not say."""
    parent: str = ""
    """Id of the run of the process that started this one; empty for the program that was recorded."""

    @property
    def slowdown(self) -> float:
        """Estimated ratio of the run's wall time to what it would have been untraced, from the tracer's own time.

        At most ``MOST_SLOWDOWN``: with several threads the tracer's time may exceed the wall's.
        """
        return self.wall_ns / max(self.wall_ns - self.clock.own_ns, self.wall_ns / MOST_SLOWDOWN, 1.0)


@dataclass(frozen=True, slots=True)
class RunCost:
    """What one run spent in a component."""

    run: Run
    """The run."""
    calls: int
    """Completed invocations of the component in it."""
    total: int
    """Cost of them, recursion counted once, unit of the metric."""
    self_total: int
    """The same without callees that are components themselves."""
    cost: int
    """Cost of the whole run, all threads together."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the recordings of an experiment say of one component: sampled invocations, and every run's totals."""

    component: Component
    """The part of the program."""
    cost: NDArray[np.float64]
    """(n,) cost of each sampled invocation, unit of the metric."""
    weight: NDArray[np.float64]
    """(n,) how many invocations each stands for."""
    uniform: NDArray[np.bool_]
    """(n,) whether it belongs to the uniform part of the sample."""
    run: NDArray[np.str_]
    """(n,) id of its run."""
    features: Mapping[str, NDArray[np.float64]]
    """Feature → (n,) values of the invocations' arguments, NaN where not read."""
    runs: tuple[RunCost, ...]
    """Every run in which the component was called."""
    categories: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    """Feature → (n,) text of the invocations: dynamic types (``x.type``), "" where not read."""
    edges: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """``calls.<component>`` → (n,) calls of that direct callee in each invocation, 0 where there was none."""
    branches: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """``branch.L12.taken`` → (n,) how often the branch went that way, NaN where it was not counted."""


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
    """A law's answer at one point, with 95 % intervals of two kinds."""

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
    expression: str
    """Distribution in the annotation language."""
    slope: Mapping[str, float]
    """Local exponent per feature at the upper end of the data."""
    delta: float
    """Difference of its score to the chosen law's, 0 to 2."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where one regime of a piecewise law ends and the next begins, with its 95 % interval."""

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
    expression: str
    """Distribution in the annotation language, such as ``LogNorm(3.1*n*log(n), 0.05)``."""
    mean: str
    """The mean expression alone, such as ``3.1*n*log(n)``."""
    features: tuple[str, ...]
    """Features the mean depends on; empty for a constant law."""
    slope: Mapping[str, float]
    """d log y / d log x per feature at the upper end of the data: the local exponent."""
    slope_low: Mapping[str, float]
    """Lower ends of the slopes' 95 % intervals, over all laws not told apart."""
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


Outcome = Literal["holds", "violated", "inconclusive", "out of scope"]
"""What new evidence says of a law."""


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """A law held against new recordings."""

    component: Component
    """The part of the program; file empty where the new recordings do not have it."""
    metric: Metric
    """What was measured."""
    path: str
    """Condition of the scope the verdict is about; empty for the whole component."""
    verdict: Outcome
    """What the recordings say of the law."""
    p: float | None
    """Probability of such a deviation or a larger one if the law holds, at any time of looking; null without a test."""
    effect: float | None
    """Cost over what the law says; null where nothing was compared."""
    effect_low: float | None
    """Lower end of its 95 % interval."""
    effect_high: float | None
    """Upper end of its 95 % interval."""
    e_value: float | None = None
    """Evidence against the law: at most 1 on average while it holds."""
    since: str = ""
    """From which size on it is violated, such as ``docs.len = 500``; empty for everywhere."""
    runs: int = 0
    """New runs compared."""
    runs_beyond: int = 0
    """Those of them beyond the minimum effect, on the side of the verdict."""
    records: int = 0
    """Records of invocations compared."""
    outside: float = 0.0
    """Share of the invocations outside the law's scope: inputs it was not learnt from, or none of its conditions true."""
    message: str = ""
    """Why, in words; what to do where it is inconclusive or out of scope."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs between two annotations of a component."""

    what: Literal["family", "coefficient", "slope", "feature", "scope", "noise", "cost"]
    """What differs."""
    name: str
    """Of which term, feature or scope."""
    old: str
    """How it was."""
    new: str
    """How it is."""
    ratio: float | None = None
    """New over old, where both are numbers."""
    low: float | None = None
    """Lower end of the ratio's 95 % interval, null where the laws give none."""
    high: float | None = None
    """Upper end of it."""


@dataclass(frozen=True, slots=True)
class Stated:
    """One law of a component as its text states it: what a chart draws of it."""

    condition: str
    """Where it holds, in the annotation language; empty for everywhere."""
    probability: float
    """Share of the invocations there that follow it."""
    expression: str
    """Its distribution in the annotation language."""
    factor: float = 1.0
    """Units of the metric in one unit of the text: 1000 where it says ``[us]``."""


@dataclass(frozen=True, slots=True)
class DiffVerdict:
    """What changed of a component between two sets of laws or recordings."""

    component: Component
    """The part of the program."""
    metric: Metric
    """What was measured."""
    path: str
    """Empty: the whole component."""
    verdict: Outcome
    """``violated``: worse beyond the minimum effect; ``holds``: not worse; ``out of scope``: only on one side."""
    p: float | None
    """Probability of such a difference or a larger one if nothing relevant changed; null for laws without evidence."""
    effect: float | None
    """Cost by the new law over cost by the old one at the sizes of the data."""
    effect_low: float | None
    """Lower end of its 95 % interval."""
    effect_high: float | None
    """Upper end of its 95 % interval."""
    changes: tuple[Change, ...] = ()
    """What differs, the most telling first; empty where nothing does."""
    better: bool = False
    """Cheaper beyond the minimum effect."""
    message: str = ""
    """The change in words."""
    old_laws: tuple[Stated, ...] = ()
    """The component's laws before; empty where there were none."""
    new_laws: tuple[Stated, ...] = ()
    """Its laws now."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a law says of a component's cost at a point a person asks for."""

    component: Component
    """The part of the program."""
    metric: Metric
    """What it costs."""
    of: Literal["run", "call"]
    """Cost of all its calls in a run of that workload, or of one call with such inputs."""
    features: Mapping[str, float]
    """The point."""
    mean: float | None
    """Expected cost; null where the law refuses."""
    mean_low: float | None
    """Lower end of the 95 % interval for the mean; null for text alone, which has none."""
    mean_high: float | None
    """Upper end of it."""
    new_low: float | None
    """Lower end of the 95 % interval for one new run or call."""
    new_high: float | None
    """Upper end of it."""
    condition: str
    """Scope of the law that answers; empty for everywhere."""
    inside: bool
    """The point is within what the law was learnt from."""
    message: str
    """Why there is no answer, or what to make of it."""
