"""Steady state told from transient: where the warm-up of a series ends, and what the rest says of the mean.

The end of the warm-up is that of MSER (White, "An effective truncation heuristic for bias reduction in simulation
output", Simulation 69(6), 1997): the point from which on the standard error of the mean is least. The error of the mean
is that of the means of batches (Law & Kelton, §9.5.3), for values close in time are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_BATCHES: Final = 10
_FEW: Final = 5
"""Of fewer values than this nothing is cut off."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The mean of a series from where it is steady."""

    mean: float
    """Mean of the values kept, weighted by their counts."""
    error: float | None
    """Its standard error; None of fewer than two values."""
    kept: int
    """Values kept."""
    warm: int
    """Values of the warm-up, which are left out."""
    settled: bool
    """Whether the warm-up ends before the middle; else the series may never have been steady."""


def steady(values: Sequence[float], weights: Sequence[float] | None = None) -> Steady:
    """The steady part of (n,) values, n ≥ 1; ``weights`` are the records that each is of.

    >>> found = steady([1, 2, 4, 9.9, 10, 10.1, 10, 9.9, 10, 10.1, 10, 9.9])
    >>> found.warm, round(found.mean, 2), found.settled
    (3, 9.99, True)
    """
    series = np.asarray(values, dtype=np.float64)
    counts = np.ones(len(series)) if weights is None else np.maximum(np.asarray(weights, dtype=np.float64), 1e-12)
    warm = warm_up(series)
    kept, counts = series[warm:], counts[warm:]
    mean = float(np.average(kept, weights=counts))
    return Steady(mean, _error(kept), len(kept), warm, len(series) < _FEW or 2 * warm < len(series) - 1)


def warm_up(series: NDArray[np.float64]) -> int:
    """How many values at the front of (n,) values are warm-up: at most half of them."""
    n = len(series)
    if n < _FEW:
        return 0
    left = np.arange(n, 0, -1)
    sums, squares = np.cumsum(series[::-1])[::-1], np.cumsum(np.square(series)[::-1])[::-1]
    spread = np.maximum(squares - sums**2 / left, 0) / np.square(left.astype(np.float64))
    return int(np.argmin(spread[: n // 2 + 1]))


def _error(values: NDArray[np.float64]) -> float | None:
    if len(values) < 2:
        return None
    batches = [part.mean() for part in np.array_split(values, min(_BATCHES, len(values)))]
    return float(np.std(batches, ddof=1) / np.sqrt(len(batches)))
