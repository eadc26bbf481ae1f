"""The data of the law learner: series as they are given, and the rows of a series as laws are fitted to them.

Runs are the replicates, invocations are not. If every feature is constant within each run, the rows of a run are
averaged and each run is one point. If a feature varies within runs, the rows stay points; their information is then
discounted by Moulton's factor (Moulton 1986), and intervals come from the spread between runs
(:mod:`perflaw.learn.series.model`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.confidence import LEVEL
from perflaw.errors import DataError
from perflaw.learn.ways import BY_RECORD, Ways

Array = NDArray[np.float64]
"""Array of floating-point numbers; its shape is stated where it is used."""
LARGEST = 1e120
"""Largest magnitude of a number, and inverse of the smallest maximum of a column: squares and their ratios fit."""
COST_ROWS = 50.0
"""Number of rows up to which the prior cost of a feature is what the series says."""


def quiet() -> np.errstate:
    """Context without NumPy's warnings: an overflow gives a law without a finite score, which is not available.

    :mod:`perflaw.learn.series.fit` decides that, and :func:`perflaw.learn.series.model.finite_band` cuts the answers
    to finite numbers.
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def drawn_rows(n: int, most: int) -> NDArray[np.intp]:
    """Places of at most ``most`` of n rows, drawn by a generator seeded by n alone."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng([n, most]).permutation(n)[:most])


def blocks(labels: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.intp]]:
    """The label of each block of equal neighbours among the labels (n,), and the lengths of the blocks.

    >>> label, length = blocks(np.array(["a", "a", "b", "a"]))
    >>> label.tolist(), length.tolist()
    (['a', 'b', 'a'], [2, 1, 1])
    """
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1])[: labels.size])
    return labels[starts], np.diff(starts, append=labels.size)


def numbered(labels: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.intp]]:
    """The distinct labels in order, and the number of each of n labels, (n,): those of a run stand in few blocks."""
    of_block, length = blocks(labels)
    distinct, number = np.unique(of_block, return_inverse=True)
    return distinct, np.repeat(number.reshape(-1), length)


def evenly(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most ``most`` of the places, evenly."""
    return places if places.size <= most else places[np.linspace(0, places.size - 1, most).astype(np.intp)]


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """While entered, cycles are not collected by themselves.

    That takes a sixth of the time on laws, none of which is in a cycle, and strikes large sizes more often.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the learner."""

    confidence: float = LEVEL
    """Nominal coverage of every interval."""
    alpha: float = 0.01
    """Error of the null control: the rate at which pure noise may get anything but a constant."""
    permutations: int = 249
    """Permutations of the null control's test, without the data themselves."""
    delta: float = 2.0
    """Laws whose score is less than this worse than the best score stay plausible."""
    regimes: bool = True
    """Search for piecewise laws."""
    several: bool = True
    """Search for laws of several features."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Responses with the features they may depend on; rows of one run share the conditions of that run."""

    name: str
    """Name of what was measured."""
    y: Array
    """Responses, (n,)."""
    features: Mapping[str, Array]
    """Candidate features by name, (n,) each; of equally good features the earlier one is chosen."""
    runs: NDArray[np.generic] | None = None
    """Label of each row's run, (n,); None: every row is a run of its own."""
    weights: Array | None = None
    """Positive sampling weights, (n,); None: all equal."""
    quantum: float = 0.0
    """Resolution of the responses in their own unit, 0 if unknown."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Prior cost of features that seldom decide a cost: −2 log likelihood that they must explain more than others."""

    varied: tuple[str, ...] | None = None
    """Features that a person can vary, for advice; None: all of them."""
    ways: Ways = BY_RECORD
    """How a person gets more rows, for advice."""
    worth: float = 1.0
    """Independent rows that a row is worth: fewer than 1 where the noise of rows is correlated in time."""

    def to_vary(self, feature: str) -> str:
        """The feature to vary where one of more values is wanted: itself if a person can vary it."""
        if self.varied is None or feature in self.varied:
            return feature
        return self.varied[0] if self.varied else "n"

    def costs_of(self, names: Iterable[str], rows: float) -> Array:
        """Prior costs of features, (F,): they grow beyond ``COST_ROWS`` rows, where chance correlations count more."""
        return np.array([self.costs.get(name, 0.0) for name in names]) * max(1.0, rows / COST_ROWS)

    def __post_init__(self) -> None:
        """Convert all columns to arrays and validate them.

        Raises DataError on unequal lengths, no rows, numbers that are not finite, weights that are not positive.
        """
        y = self._numbers("the response", self.y)
        if y.size == 0:
            raise DataError(
                f"series {self.name!r} has no rows", "nothing was measured", "perflaw record -- python app.py"
            )
        object.__setattr__(self, "y", y)
        features = {name: self._numbers(f"feature {name!r}", values, y.size) for name, values in self.features.items()}
        object.__setattr__(self, "features", features)
        if self.weights is not None:
            weights = self._numbers("the weights", self.weights, y.size)
            if (weights <= 0).any():
                raise DataError(
                    f"series {self.name!r}: weights must be positive",
                    "a row weighs nothing or less",
                    "leave such rows out",
                )
            object.__setattr__(self, "weights", weights)
        if self.runs is not None and np.shape(self.runs) != y.shape:
            what = f"series {self.name!r}: {np.size(self.runs)} run labels for {y.size} rows"
            raise DataError(what, "each row belongs to one run", "give one label for each row")
        if not (np.isfinite(self.quantum) and self.quantum >= 0):
            what = f"series {self.name!r}: the quantum must be a number of at least 0, not {self.quantum}"
            raise DataError(what, "it is the smallest step of the response", "quantum=0 where it has none")

    def _numbers(self, column: str, values: ArrayLike, length: int | None = None) -> Array:
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 1 or (length is not None and array.size != length):
            what = f"series {self.name!r}: {column} has shape {array.shape}"
            raise DataError(what, f"expected ({length or 'n'},)", "give one number for each row")
        bad = np.count_nonzero(~np.isfinite(array))
        if bad:
            what = f"series {self.name!r}: {column} has {bad} values that are not finite numbers"
            raise DataError(what, "they are nan or infinite", "leave such rows out")
        largest = np.abs(array).max(initial=0.0)
        if largest > LARGEST or 0 < largest < 1.0 / LARGEST:
            why = "squares of it do not fit"
            raise DataError(f"series {self.name!r}: {column} reaches {largest:.3g}", why, "give another unit")
        return array


@dataclass(frozen=True, slots=True)
class Units:
    """What is exchangeable if nothing depends on a feature: the runs, or the rows of a single run."""

    x: Array
    """Features, (F, n)."""
    y: Array
    """Responses, (n,)."""
    log_y: Array | None
    """Logarithms of the responses, (n,); None if a response is not positive."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A series ready to be fitted: n points with F features."""

    series: Series
    """The series as it was given."""
    x: Array
    """Features, (F, n); a row of zeros if there is none."""
    y: Array
    """Responses, (n,); means over the rows of a run if these were averaged."""
    log_y: Array
    """Logarithms of the responses, or their means in a run, (n,); 0 if a response is not positive."""
    w: Array
    """Weights, (n,); their sum is n."""
    positive: bool
    """All responses are positive."""
    effective: float
    """Effective number of independent rows under these weights, at most n."""
    runs: int
    """Number of runs."""
    within: tuple[float, float]
    """Variance of rows about the mean of their run that averaging has hidden: of y and of log y."""
    clusters: NDArray[np.intp] | None
    """Run of every point, (n,), if several points share a run and there are several runs; else None."""
    units: Units
    """What the null control permutes."""
    varying: NDArray[np.bool_]
    """Features that vary within runs, (F,); none if ``clusters`` is None."""
    searched: dict[tuple[int, ...], Any] = field(init=False, repr=False, default_factory=dict)
    """What a search for laws of some features (their places) found, until the search is over."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features in order."""
        return tuple(self.series.features)


def prepare(series: Series) -> Rows:
    """Rows of a series; the rows of a run are averaged if every feature is constant within each run."""
    n = series.y.size
    # A feature that never varies stands in if there is none: only the constant can be fitted to it.
    x = np.array(list(series.features.values()) or [np.zeros(n)])
    w = np.ones(n) if series.weights is None else series.weights * (n / series.weights.sum())
    positive = bool((series.y > 0).all())
    log_y = np.log(series.y) if positive else np.zeros(n)
    effective = max(series.worth * float(w.sum() ** 2 / (w * w).sum()), 1.0)
    runs, run, nothing_hidden = n, np.zeros(0, dtype=np.intp), (0.0, 0.0)
    if series.runs is not None:
        labels, run = numbered(series.runs)
        runs = labels.size
    if runs in (1, n):
        units, varying = Units(x, series.y, log_y if positive else None), np.zeros(len(x), dtype=bool)
        return Rows(series, x, series.y, log_y, w, positive, effective, runs, nothing_hidden, None, units, varying)

    size = np.bincount(run, w)
    *means, mean_y, mean_log = (np.bincount(run, row * w) / size for row in (*x, series.y, log_y))
    mean_x = np.stack(means)
    reach = np.abs(x).max(axis=-1, initial=0.0, keepdims=True)
    varying = (np.abs(x - mean_x[:, run]) > 1e-9 * reach).any(axis=-1)
    units = Units(mean_x, mean_y, mean_log if positive else None)
    if varying.any():
        return Rows(series, x, series.y, log_y, w, positive, effective, runs, nothing_hidden, run, units, varying)
    within = (_within_runs(series.y - mean_y[run], w, run), _within_runs(log_y - mean_log[run], w, run))
    equal = np.ones(runs)
    return Rows(series, mean_x, mean_y, mean_log, equal, positive, float(runs), runs, within, None, units, varying)


def _within_runs(deviation: Array, w: Array, run: NDArray[np.intp]) -> float:
    """Pooled variance within runs, less the part 1/m of it that the mean of m rows still shows."""
    size = np.bincount(run)
    pooled = float((w * deviation**2).sum() / (run.size - size.size))
    return pooled * (1.0 - 1.0 / float(np.mean(size)))
