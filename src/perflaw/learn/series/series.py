"""What the learner reads: series of responses with their candidate features, validated once at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.confidence import LEVEL
from perflaw.errors import DataError

Array = NDArray[np.float64]
"""Floating point array; shapes are said where one is used."""

LARGEST = 1e120
"""Largest magnitude of a number, and one over the smallest of a column's largest: squares and their ratios fit."""


def quiet() -> np.errstate:
    """Context in which laws are fitted and asked: what overflows has no finite score and is not available.

    That is decided in one place (``fit``), and answers are cut to finite numbers in another (``band``).
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose about learning."""

    confidence: float = LEVEL
    """Nominal coverage of every interval."""
    alpha: float = 0.01
    """Error of the null control: how often pure noise may get anything but a constant."""
    permutations: int = 249
    """Permutations of the null control's test, the data themselves not counted."""
    delta: float = 2.0
    """Laws whose score is less than this worse than the best are not told apart from it."""
    regimes: bool = True
    """Piecewise laws are looked for."""
    several: bool = True
    """Laws of several features are looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Responses with the features they may depend on; rows of one run share whatever that run was like."""

    name: str
    """What the series is of."""
    y: Array
    """Responses, (n,)."""
    features: Mapping[str, Array]
    """Candidate features by name, (n,) each; earlier ones win ties."""
    runs: NDArray[np.generic] | None = None
    """Run of every row, (n,), any labels; None: every row is a run of its own."""
    weights: Array | None = None
    """Sampling weights, (n,), positive; None: all equal."""
    quantum: float = 0.0
    """Resolution of the responses in their own unit, 0 where unknown."""

    def __post_init__(self) -> None:
        """Turn everything into arrays and refuse what no law can be learnt from.

        Raises DataError on unequal lengths, no rows, numbers that are not finite, weights that are not positive.
        """
        y = self._numbers("the response", self.y)
        if y.size == 0:
            raise DataError(f"series {self.name!r} has no rows", "nothing was measured", "")
        object.__setattr__(self, "y", y)
        named = {name: self._numbers(f"feature {name!r}", values, y.size) for name, values in self.features.items()}
        object.__setattr__(self, "features", named)
        if self.weights is not None:
            weights = self._numbers("the weights", self.weights, y.size)
            if (weights <= 0).any():
                raise DataError(f"series {self.name!r}: weights must be positive", "a row weighs nothing or less", "")
            object.__setattr__(self, "weights", weights)
        if self.runs is not None and np.shape(self.runs) != y.shape:
            raise DataError(f"series {self.name!r}: {np.size(self.runs)} run labels for {y.size} rows")
        if not (np.isfinite(self.quantum) and self.quantum >= 0):
            raise DataError(f"series {self.name!r}: the quantum must be a number of at least 0, not {self.quantum}")

    def _numbers(self, what: str, values: ArrayLike, length: int | None = None) -> Array:
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 1 or (length is not None and array.size != length):
            raise DataError(f"series {self.name!r}: {what} has shape {array.shape}", f"expected ({length or 'n'},)")
        bad = np.count_nonzero(~np.isfinite(array))
        if bad:
            raise DataError(f"series {self.name!r}: {what} has {bad} values that are not finite numbers")
        largest = np.abs(array).max(initial=0.0)
        if largest > LARGEST or 0 < largest < 1.0 / LARGEST:
            raise DataError(
                f"series {self.name!r}: {what} reaches {largest:.3g}", "squares of it do not fit", "give another unit"
            )
        return array
