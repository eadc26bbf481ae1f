"""The input of the trend learner, checked once: counts of locations over runs, and the features of the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.errors import DataError
from perflaw.learn.plausibility import run_feature_costs
from perflaw.parts import untold

Array = NDArray[np.float64]
"""Floating point array; a docstring states its shape where it is used."""
COSTLY = 0.02
"""A cluster is costly if its counts are more than this part of some run's counts (Figure 4 of the paper)."""
MIN_RUNS = 3
"""Any two locations lie on a line through two runs."""
FEW_WORKLOADS = 5
"""With fewer distinct runs many unrelated locations fit each other by chance."""
MAX_COUNT = 1e100
"""Largest count; its squares can be summed."""
RECORD_MORE = "perflaw record --collect lines --vary n=100,300,1000,3000,10000,30000 -- …"
"""The command that records more workloads."""


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """The parameters of trend-prof §4, with the paper's values, and those that perflaw adds."""

    alpha: float = 0.02
    """Members fit their representative with R² more than 1 − alpha (§4.1); between 0 and 0.5."""
    sigma: float = 10.0
    """Standard deviation (bias-corrected) that a location's count needs to be clustered (§4.1)."""
    paper: bool = False
    """Follow the paper wherever perflaw differs from it.

    Locations that fall where the representative rises are members too, every feature represents a cluster of its own
    even if it is proportional to another one, intervals of power laws are bootstrap percentiles over runs, the 95th
    percentile is an order statistic, and predicted costs and overtaking points come from the power laws.
    """
    representatives: tuple[int, ...] = ()
    """Rows of the matrix whose counts are used as features as well (§6.2.3)."""
    nonzero: int = 6
    """Runs with a count above 0 that a law of a cluster needs: two or three such runs lie on any curve."""
    full: int = 100
    """Number of clusters, by cost and by predicted cost, that get a joint law, breakpoints, curves and residuals.

    Costly clusters always get them. The others keep a law for every feature, with its intervals.
    """
    bootstraps: int = 1000
    """Resamples of the paper's intervals (§4.2)."""
    seed: int = 1
    """Seed of the resamples."""
    progress: Callable[[float], None] = untold
    """Is told which part of the laws is learnt, 0 to 1."""

    def __post_init__(self) -> None:
        """Refuse values for which the theorem of §4.1.1 does not hold."""
        if not 0.0 < self.alpha < 0.5:
            what = f"alpha must lie between 0 and 0.5, not {self.alpha:g}"
            raise DataError(what, "members fit with R² > 1 − alpha", "--alpha 0.02")
        if not self.sigma >= 0.0:
            what = f"sigma must be a number of at least 0, not {self.sigma:g}"
            raise DataError(what, "it is the least deviation of a count", "--sigma 10")
        if self.nonzero < 1:
            what = f"a law needs at least 1 run with a count above 0, not {self.nonzero}"
            raise DataError(what, "of zeros alone nothing is learnt", "--nonzero 6")


@dataclass(frozen=True, slots=True, eq=False)
class TrendData:
    """Counts of L locations in R runs, and the features that may explain them."""

    counts: Array
    """(L, R), none negative."""
    names: tuple[str, ...]
    """Names of the locations, (L,)."""
    features: Mapping[str, Array]
    """Features that vary, (R,) each, NaN for a run without the feature.

    Sizes come first, then other numbers, then what numbers the runs; in the given order with ``paper``.
    """
    designated: Mapping[str, int]
    """Features that are counts of a location → row of the location."""
    workload: NDArray[np.intp]
    """Number of the workload of each run, (R,); runs of equal features repeat one workload."""
    notes: tuple[str, ...]
    """What cannot be used and why, a sentence each."""

    @property
    def workloads(self) -> int:
        """Number of distinct workloads: the replicates."""
        return int(self.workload.max()) + 1

    @property
    def complete(self) -> dict[str, Array]:
        """Features that every run has."""
        return {name: x for name, x in self.features.items() if not np.isnan(x).any()}


def check_data(
    counts: ArrayLike, names: Sequence[str], features: Mapping[str, ArrayLike], options: TrendOptions
) -> TrendData:
    """The data in checked form; DataError for wrong shapes, invalid counts, or fewer than three runs."""
    matrix = np.ascontiguousarray(counts, dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) != len(names):
        why = f"expected {len(names)} rows, one for each location"
        raise DataError(f"counts have shape {matrix.shape}", why, "give one row of counts for each name")
    if matrix.shape[1] < MIN_RUNS:
        few = "one run tells" if matrix.shape[1] == 1 else f"{matrix.shape[1]} runs tell"
        raise DataError(f"{few} no trend", f"at least {MIN_RUNS} different workloads are needed", RECORD_MORE)
    # Sums reveal NaN and infinity without a second matrix of this size.
    if matrix.size and not (np.isfinite(matrix.sum()) and matrix.min() >= 0):
        row = int(np.argmax([not (np.isfinite(line).all() and line.min() >= 0) for line in matrix]))
        raise DataError(f"counts of {names[row]} are invalid", "a count is a number of at least 0", "correct them")
    if matrix.size and matrix.max() > MAX_COUNT:
        raise DataError(f"counts reach {matrix.max():.3g}", "their squares overflow", "use a larger unit")
    runs = matrix.shape[1]
    notes: list[str] = []
    kept: dict[str, Array] = {}
    for name, values in features.items():
        x = np.ascontiguousarray(values, dtype=np.float64)
        if x.shape != (runs,):
            why = f"expected ({runs},), a value for each run"
            raise DataError(f"feature {name} has shape {x.shape}", why, "give one value for each run")
        if np.isinf(x).any():
            why, remedy = "no law can be learnt over it", "correct it, or leave that run out"
            raise DataError(f"feature {name} is infinite in some run", why, remedy)
        if reason := _unusable(x):
            notes.append(f"feature {name} is left out: {reason}")
            continue
        kept[name] = x
        if lacking := int(np.isnan(x).sum()):
            notes.append(f"feature {name} is missing in {lacking} of {runs} runs: its laws are learnt without them")
    if not options.paper:
        prior_costs = run_feature_costs(kept)
        kept = {name: kept[name] for name in sorted(kept, key=lambda name: prior_costs[name])}
    columns = np.array(list(kept.values())) if kept else matrix
    numbers: dict[bytes, int] = {}
    workload = np.array(
        [numbers.setdefault((column + 0.0).tobytes(), len(numbers)) for column in columns.T], dtype=np.intp
    )
    designated = {}
    for row in dict.fromkeys(options.representatives):
        if not 0 <= row < len(names):
            why = f"the matrix has {len(names)} locations"
            raise DataError(f"there is no location {row}", why, f"a row from 0 to {len(names) - 1}")
        name = names[row]
        if name in kept:
            raise DataError(
                f"{name} is both a feature and a location", "a name can mean only one of them", "rename the feature"
            )
        if reason := _unusable(matrix[row]):
            notes.append(f"location {name} is left out as a feature: {reason}")
        else:
            kept[name], designated[name] = matrix[row], row
    # What limits the whole result, a sentence each.
    distinct = len({column.tobytes() for column in matrix.T})
    if distinct == 1:
        notes.append("all runs have the same counts: nothing varies")
    elif distinct < MIN_RUNS:
        notes.append(f"only {distinct} runs differ: any two locations fit each other, so clusters mean nothing")
    elif distinct < FEW_WORKLOADS:
        notes.append(f"only {distinct} runs differ: unrelated locations may share a cluster by chance")
    runs, workloads = workload.size, int(workload.max()) + 1
    if not kept:
        notes.append("no feature varies: clusters have no laws; `perflaw feature NAME=… RUN` declares a feature")
    elif runs < options.nonzero:
        few = f"{runs} runs are fewer than the {options.nonzero} that a law needs"
        notes.append(f"clusters have no laws: {few}: record more sizes, or lower the limit with --nonzero {runs}")
    elif workloads < runs:
        notes.append(f"{runs} runs of {workloads} workloads: runs of equal features repeat one workload")
    return TrendData(matrix, tuple(names), kept, designated, workload, tuple(notes))


def _unusable(x: Array) -> str:
    """Why a feature (R,) explains nothing; empty if it may explain something."""
    known = x[~np.isnan(x)]
    if known.size == 0:
        return "no run has it"
    if known.size < MIN_RUNS:
        return f"only {known.size} run{'s have' if known.size > 1 else ' has'} it"
    if np.ptp(known) == 0:
        return f"it is {known[0]:g} in all runs"
    return ""
