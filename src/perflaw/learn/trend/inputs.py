"""What the trend learner reads: counts and features, validated once at the door; what cannot be used is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.errors import DataError

# ---- What a person may choose about trends.


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """Choices of trend-prof §4, with the paper's values, and what ours adds."""

    alpha: float = 0.02
    """Members fit their representative with R² more than 1 − alpha (§4.1); between 0 and 0.5."""
    sigma: float = 10.0
    """Standard deviation (bias-corrected) a location's count needs to be looked at (§4.1)."""
    paper: bool = False
    """The paper's own reading wherever ours differs.

    Locations that fall where the representative rises are members too, all features are representatives even where they
    say the same, intervals of power laws are bootstrap percentiles over runs, the 95th percentile is an order
    statistic, and predicted costs and overtaking points come from the power laws.
    """
    representatives: tuple[int, ...] = ()
    """Rows of the matrix that are features as well: their counts explain others (§6.2.3)."""
    full: int = 100
    """So many clusters, costliest now and costliest predicted, get a joint law, breakpoints, curves and residuals.

    Costly ones always do. The others keep a law for every feature, with its intervals.
    """
    bootstraps: int = 1000
    """Resamples of the paper's intervals (§4.2)."""
    seed: int = 1
    """Seed of the resamples."""

    def __post_init__(self) -> None:
        """Refuse what the theorem of §4.1.1 does not hold for."""
        if not 0.0 < self.alpha < 0.5:
            raise DataError(f"alpha must lie between 0 and 0.5, not {self.alpha:g}", "R² of 1 − alpha makes a cluster")
        if not self.sigma >= 0.0:
            raise DataError(f"sigma must be a number of at least 0, not {self.sigma:g}")


CONFIDENCE = 0.95
"""Coverage of all intervals."""

COSTLY = 0.02
"""A cluster is costly that is more than this part of some run (Figure 4 of the paper)."""

Array = NDArray[np.float64]
"""Floating point array; shapes are said where one is used."""

FEWEST_RUNS = 3
"""Any two locations lie on a line through two runs."""

FEW_WORKLOADS = 5
"""With fewer distinct runs many unrelated locations fit each other by chance."""

LARGEST = 1e100
"""Largest count; its squares can be summed."""

VARY_MORE = "perflaw record --collect lines --vary n=100,300,1000,3000,10000 -- …"
"""What gives more workloads."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Counts of L locations in R runs, and the F features that explain them."""

    counts: Array
    """(L, R), none negative."""
    names: tuple[str, ...]
    """Of the locations, (L,)."""
    features: Mapping[str, Array]
    """Features that vary, (R,) each, NaN where a run does not say it; declared ones first."""
    designated: Mapping[str, int]
    """Features that are locations → their row."""
    workload: NDArray[np.intp]
    """Number of the workload of each run, (R,): runs of equal features are repeats of one."""
    notes: tuple[str, ...]
    """What cannot be used and why, a sentence each."""

    @property
    def workloads(self) -> int:
        """Distinct workloads: the replicates."""
        return int(self.workload.max()) + 1

    @property
    def complete(self) -> dict[str, Array]:
        """Features that every run says."""
        return {name: x for name, x in self.features.items() if not np.isnan(x).any()}


def given(counts: ArrayLike, names: Sequence[str], features: Mapping[str, ArrayLike], options: TrendOptions) -> Given:
    """Check the matrix; DataError on wrong shapes, counts that are none, fewer than three runs."""
    matrix = _matrix(counts, names)
    runs = matrix.shape[1]
    notes: list[str] = []
    kept: dict[str, Array] = {}
    for name, values in features.items():
        x = _feature(name, values, runs)
        unusable = _unusable(x)
        if unusable:
            notes.append(f"feature {name} is left out: {unusable}")
        else:
            kept[name] = x
            unsaid = int(np.isnan(x).sum())
            if unsaid:
                notes.append(f"feature {name} is not said by {unsaid} of {runs} runs: its laws are of the others alone")
    workload = _workloads(kept, matrix)
    designated = _designated(matrix, names, kept, options, notes)
    notes += _warnings(matrix, workload, kept)
    return Given(matrix, tuple(names), kept, designated, workload, tuple(notes))


def _matrix(counts: ArrayLike, names: Sequence[str]) -> Array:
    matrix = np.ascontiguousarray(counts, dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) != len(names):
        raise DataError(f"counts have shape {matrix.shape}", f"expected {len(names)} rows, one a location")
    if matrix.shape[1] < FEWEST_RUNS:
        what = "one run tells" if matrix.shape[1] == 1 else f"{matrix.shape[1]} runs tell"
        raise DataError(f"{what} no trend", f"at least {FEWEST_RUNS} different workloads are needed", VARY_MORE)
    # Sums tell NaN and infinity without a second matrix of this size.
    if matrix.size and not (np.isfinite(matrix.sum()) and matrix.min() >= 0):
        row = int(np.argmax([not (np.isfinite(line).all() and line.min() >= 0) for line in matrix]))
        raise DataError(f"counts of {names[row]} are not all numbers of at least 0", "nothing runs less than never")
    if matrix.size and matrix.max() > LARGEST:
        raise DataError(f"counts reach {matrix.max():.3g}", "squares of them do not fit", "give another unit")
    return matrix


def _feature(name: str, values: ArrayLike, runs: int) -> Array:
    x = np.ascontiguousarray(values, dtype=np.float64)
    if x.shape != (runs,):
        raise DataError(f"feature {name} has shape {x.shape}", f"expected ({runs},), a value for each run")
    if np.isinf(x).any():
        raise DataError(f"feature {name} is infinite in some run")
    return x


def _unusable(x: Array) -> str:
    """Why a feature explains nothing; empty where it may."""
    said = x[~np.isnan(x)]
    if said.size == 0:
        return "no run says it"
    if said.size < FEWEST_RUNS:
        return f"only {said.size} runs say it"
    if np.ptp(said) == 0:
        return f"it is {said[0]:g} in all runs"
    return ""


def _workloads(features: Mapping[str, Array], counts: Array) -> NDArray[np.intp]:
    """Number of each run's workload, (R,): by the features, without any by the counts themselves."""
    columns = np.array(list(features.values())) if features else counts
    seen: dict[bytes, int] = {}
    # Adding 0 makes −0 the 0 it equals; NaN has one pattern here.
    return np.array([seen.setdefault((column + 0.0).tobytes(), len(seen)) for column in columns.T], dtype=np.intp)


def _designated(
    matrix: Array, names: Sequence[str], features: dict[str, Array], options: TrendOptions, notes: list[str]
) -> dict[str, int]:
    """Enter locations that are declared features after the others; in place."""
    found = {}
    for row in dict.fromkeys(options.representatives):
        if not 0 <= row < len(names):
            raise DataError(f"there is no location {row}", f"the matrix has {len(names)}")
        name = names[row]
        if name in features:
            raise DataError(f"{name} is a feature and a location declared one", "a name can mean one of them")
        unusable = _unusable(matrix[row])
        if unusable:
            notes.append(f"location {name} is left out as a feature: {unusable}")
        else:
            features[name], found[name] = matrix[row], row
    return found


def _warnings(matrix: Array, workload: NDArray[np.intp], features: Mapping[str, Array]) -> list[str]:
    """What limits the whole result."""
    notes = []
    distinct = len({column.tobytes() for column in matrix.T})
    if distinct == 1:
        notes.append("all runs have the same counts: nothing varies")
    elif distinct < FEWEST_RUNS:
        notes.append(f"only {distinct} runs differ: any two locations fit each other, clusters mean nothing")
    elif distinct < FEW_WORKLOADS:
        notes.append(f"only {distinct} runs differ: unrelated locations may share a cluster by chance")
    if not features:
        notes.append("no feature varies: clusters without laws; perflaw feature NAME=… declares one afterwards")
    elif int(workload.max()) + 1 < workload.size:
        runs, loads = workload.size, int(workload.max()) + 1
        notes.append(f"{runs} runs of {loads} workloads: runs of equal features count as repeats, not as evidence")
    return notes
