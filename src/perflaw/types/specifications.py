"""Performance specifications: what durations a function shows on which call paths (Brünink & Rosenblum, FSE'16, §3.4, §3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from perflaw.types.documents import OMITTED, stated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# ---- Distributions of durations as they are collected: histograms with exponential buckets, in observations, by call
# path.
#
# Sources: OpenTelemetry metrics data model, "ExponentialHistogram"; Brünink & Rosenblum, FSE'16, §3.2 (observations).

MOST_BUCKETS: Final = 640
"""Of a histogram; with 160, as OpenTelemetry's, a range of 10⁸ has buckets 19 % wide."""
MOST_SCALE: Final = 10
"""The finest scale: buckets 0.07 % wide. A histogram begins there and is downscaled as its range grows."""
LEVELS: Final = 20
"""Batches are of 1, 2, 4, … 2^19 points."""
MIN_GROUP_WORTH: Final = 20.0
"""Independent calls that a group must be worth to be looked at."""
LOCATION_LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of a group's calls at whose quantiles its durations are specified."""
UNIT: Final = 1 << MOST_SCALE
"""Logarithms in batches are whole: ⌊UNIT·log2 duration⌋ (0 for a duration of 0)."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Durations of calls, in buckets whose bounds grow by 2^(2^-scale): mergeable, bounded, any unit (ours: ns)."""

    scale: int
    """Bucket i holds what is above base^i and at most base^(i+1), base = 2^(2^-scale)."""
    offset: int
    """Index i of the first bucket."""
    counts: Ints
    """(B,) calls in each bucket; neither the first nor the last is 0."""
    zeros: int = 0
    """Calls that took no time by the clock."""


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Sums over batches of consecutive calls: they carry the autocorrelation, which a histogram loses.

    Level k divides the calls, in the order of their ends, into batches of 2^k; an unfinished batch is left out. B is the
    sum, in a batch, of the whole logarithms of the durations (``UNIT``).
    """

    batches: tuple[int, ...]
    """(levels,) complete batches of 2^k calls."""
    sum_b: tuple[int, ...]
    """(levels,) ΣB, exact."""
    sum_bb: tuple[int, ...]
    """(levels,) ΣB², exact."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Where durations were measured: absolute times are compared within one platform only."""

    host: str
    """Name of the machine."""
    build: str
    """Build id of the program, or a digest of its sources; empty where unknown."""
    tick: float
    """Calibrated step of the clock, ns; 0 where unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """(start, end, kind, data) of Definition 2: what was collected of one function in one stretch of time."""

    start_ns: int
    """When it began, ns since 1970."""
    end_ns: int
    """When it was closed."""
    paths: Mapping[int, Histogram]
    """Call path (place in ``Observed.paths``) → durations of the calls that came that way."""
    batches: Batches
    """Of the function's calls, whatever their path."""
    path_batches: Mapping[int, Batches]
    """The same of each path's."""
    platform: int
    """Place in ``Observed.platforms``."""
    run: str = ""
    """Id of the run."""
    nested: int = 0
    """Calls within these calls that each cost a probe (``Observed.probe_ns``): of recorded functions, and of others that
    were left out and whose hooks the program calls all the same."""
    cpu_paths: Mapping[int, Histogram] = field(default_factory=dict)
    """Call path → CPU time of the same calls, beside their time; empty where it is not known."""
    selected: str = ""
    """Patterns of the functions that were recorded, between spaces; empty: all. Other functions are on no call path."""


CallPath = tuple[str, ...]
"""Names of functions from the start of the program to the function itself, both included; recursion folded."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """All that was observed of one function by one clock."""

    component: str
    """Name of the function."""
    metric: str
    """Which clock: ``time`` or ``cpu``."""
    unit: str
    """Of borders: ``ns``."""
    paths: tuple[CallPath, ...]
    """The call paths; each ends with the function."""
    observations: tuple[Observation, ...]
    """In order of their start."""
    platforms: tuple[Platform, ...]
    """Where it was measured."""
    probe_ns: float = 0.0
    """What recording one call adds to the time of its callers."""
    share: float | None = None
    """Part of the program's time that is spent in the function itself; None where unknown."""
    notes: tuple[str, ...] = ()
    """What is missing or uncertain."""
    queued_ns: Mapping[str, int] = field(default_factory=dict)
    """Run → time that it queued for a CPU of a busy machine; runs about which the kernel says nothing are missing."""


Edge = tuple[str, str]
"""A call: names of caller and callee; the caller of a program's first function is ``(start)``."""
Term = tuple[tuple[Edge, bool], ...]
"""A conjunction: each edge lies on the call path (True) or does not (False). The empty one holds for every path."""
Standing = Literal["", "inseparable", "quarantined"]
"""Of a group: told apart by its expression; not told apart from another group; conflicting between models that were merged."""


@dataclass(frozen=True, slots=True)
class PathGroup:
    """Call paths on which a function behaves alike."""

    id: str
    """Short name, stable under the order of input: a digest of the function and the paths' expression."""
    paths: tuple[int, ...] = field(metadata=OMITTED)
    """Places in ``PathSpec.paths``."""
    distribution: tuple[float, ...]
    """Share of the calls in each cluster, the quickest first; sums to 1."""
    counts: tuple[int, ...]
    """Calls in each cluster."""
    effective: float
    """Independent calls that these are worth: fewer than the calls where durations are autocorrelated."""
    expression: tuple[Term, ...] = field(metadata=OMITTED)
    """When a call belongs here: any of these conjunctions (disjunctive normal form); empty where the standing says why."""
    standing: Standing = ""
    """Whether the expression tells it apart."""
    mislabelled: float = 0.0
    """Share of its calls that come by paths for which the expression says otherwise (soft separation)."""
    behaviours: Mapping[int, tuple[float, ...]] | None = field(default=None, metadata=OMITTED)
    """Platform (place in ``PathSpec.platforms``) → distribution there, by the borders there; None on one platform."""
    durations: tuple[float, ...] = ()
    """Quantiles of its durations at ``LOCATION_LEVELS``, ns: geometric means over the runs; empty where not known."""
    cpu_durations: tuple[float, ...] = field(default=(), metadata=OMITTED)
    """The same without what the calls may have queued for a CPU of a busy machine; empty where that is no less."""
    path_medians: tuple[float, ...] = field(default=(), metadata=OMITTED)
    """Least and largest median duration among its call paths with enough calls, ns; empty where not known."""
    path_shares: tuple[tuple[float, float], ...] = field(default=(), metadata=OMITTED)
    """For each border, least and largest share of slower calls among these call paths; empty where not known."""
    runs: int = field(default=0, metadata=OMITTED)
    """Runs in which its calls were observed; 0 where not known."""
    share_spread: tuple[float, ...] = field(default=(), metadata=OMITTED)
    """For each border, standard deviation between runs of the share of slower calls; empty for fewer than two runs."""
    duration_spread: float | None = field(default=None, metadata=OMITTED)
    """Standard deviation of the logarithms of a run's quantiles, beyond what all functions share; None where not known."""


@dataclass(frozen=True, slots=True)
class PathSpec:
    """The specification of one function by one clock: borders between clusters of durations, and groups of call paths."""

    component: str
    """Name of the function."""
    metric: str
    """Which clock: ``time`` or ``cpu``."""
    unit: str
    """Of the borders."""
    borders: tuple[float, ...]
    """Between clusters, increasing; empty where durations are of one kind."""
    quantiles: tuple[float, ...]
    """Share of all calls below each border: what is compared across platforms."""
    groups: tuple[PathGroup, ...] = field(metadata=OMITTED)
    """Groups of call paths, that of most calls first; one group where call paths do not matter."""
    paths: tuple[CallPath, ...] = field(metadata=OMITTED)
    """The call paths."""
    path_counts: tuple[tuple[int, ...], ...] = field(metadata=OMITTED)
    """(paths, clusters) calls."""
    unknown: tuple[int, ...] = field(metadata=OMITTED)
    """Paths with too few calls to belong anywhere."""
    stable: bool
    """Whether the borders are found again in the observations (Algorithm 1)."""
    observations: int
    """How many there are."""
    points: int = field(metadata=stated(calls=""))
    """Calls in all."""
    utility: float
    """How useful further observations would be, 0 … 1 (Algorithm 3)."""
    platforms: tuple[Platform, ...] = ()
    """Where it was measured."""
    platform_borders: Mapping[int, tuple[float, ...]] | None = field(default=None, metadata=OMITTED)
    """Platform → borders there; None on one platform."""
    platform_counts: Mapping[int, tuple[tuple[int, ...], ...]] | None = field(default=None, metadata=OMITTED)
    """Platform → (paths, clusters) calls there; None on one platform, or where it is not known."""
    atoms: tuple[Edge, ...] = field(default=(), metadata=stated(edges=""))
    """Edges that the expressions use."""
    share: float | None = None
    """Part of the program's time spent in the function itself."""
    notes: tuple[str, ...] = ()
    """What a reader should know: too few points, perturbed by nested probes, a clock that stands still."""
    selected: tuple[str, ...] = field(default=(), metadata=OMITTED)
    """Patterns of the functions that were recorded, each as in ``Observation.selected``: callers on its paths match all."""


@dataclass(frozen=True, slots=True)
class Consistency:
    """How far two models of a function agree (RQ1, RQ2): call paths that both group alike, those of as many calls as can be."""

    component: str
    """Name of the function."""
    paths: float
    """Share of the common call paths that are consistent."""
    points: float
    """Share of the calls that came by them."""
    chance_paths: float
    """The level that random groups of the same sizes reach, of paths."""
    chance_points: float
    """The same, of calls."""
    common: int
    """Call paths that both models have."""


# ---- A file of specifications: what was mined, from which runs, and how these runs differed.


@dataclass(frozen=True, slots=True)
class Tally:
    """Calls of one group of call paths in one run."""

    run: str = field(metadata=stated(id=""))
    """Id of the run."""
    counts: tuple[int, ...]
    """Calls in each cluster."""
    worth: float = field(metadata=stated(effective=""))
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
