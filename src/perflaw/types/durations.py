"""Distributions of durations as they are collected: histograms with exponential buckets, in observations, by call path.

Sources: OpenTelemetry metrics data model, "ExponentialHistogram"; Brünink & Rosenblum, FSE'16, §3.2 (observations).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_BUCKETS: Final = 640
"""Of a histogram; with 160, as OpenTelemetry's, a range of 10⁸ has buckets 19 % wide."""
MOST_SCALE: Final = 10
"""The finest scale: buckets 0.07 % wide. A histogram begins there and is downscaled as its range grows."""
LEVELS: Final = 20
"""Batches are of 1, 2, 4, … 2^19 points."""
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
    """Calls of recorded functions within these calls: each of them costs a probe (``Observed.probe_ns``)."""
    sampling: float = 1.0
    """Calls for each that was measured."""


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
