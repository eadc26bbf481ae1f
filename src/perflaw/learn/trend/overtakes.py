"""Overtaking points (trend-prof §4.2): from which size on a cluster costs more than one that is ranked above it.

Laws are compared on a grid from the smallest to 100 times the largest value of a feature; a crossing counts where
the laws stay changed until the end of it. Its interval is where their bands could cross first and last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.learn.series import Learnt
from perflaw.learn.trend.inputs import Array
from perflaw.types import Overtake, PowerLaw

FAR = 100.0
"""What a law says beyond so many times the data is no forecast."""

CLEARLY = 1e-3
"""A lead at the end that is smaller is a tie: two clusters of the same locations, and rounding."""

GRID = 160
"""Values of the feature that laws are compared at; crossings between them are interpolated."""


@dataclass(frozen=True, slots=True)
class Growing:
    """A cluster's cost as a function of one feature."""

    law: Learnt | PowerLaw
    """Ours or the paper's."""
    feature: str
    """The feature."""

    def mean(self, x: Array) -> Array:
        """Expected cost, (k,)."""
        if isinstance(self.law, PowerLaw):
            return np.asarray(self.law.coefficient * x**self.law.exponent)
        return self.law.mean({self.feature: x})

    def band(self, x: Array) -> tuple[Array, Array]:
        """Limits of the mean, (k,) each; a power law's are taken from its coefficient and exponent together."""
        if isinstance(self.law, PowerLaw):
            return self._of_power(self.law, x)
        _, low, high, _, _ = self.law.band({self.feature: x})
        return low, high

    def _of_power(self, law: PowerLaw, x: Array) -> tuple[Array, Array]:
        """Limits that turn about the last prediction's point with the exponent's."""
        mean = self.mean(x)
        if law.exponent_low is None or law.exponent_high is None or not law.predictions:
            return np.zeros_like(x), np.full_like(x, 1e300)
        known = law.predictions[0]
        away = x / known.features[self.feature]
        sides = [mean * away ** (side - law.exponent) for side in (law.exponent_low, law.exponent_high)]
        near = known.mean_low / known.mean, known.mean_high / known.mean
        return np.minimum(*sides) * near[0], np.maximum(*sides) * near[1]


def overtakes(
    laws: Sequence[Mapping[str, Growing]],
    names: Sequence[str],
    costly: Sequence[bool],
    worth: Sequence[bool],
    x: Array,
    feature: str,
    furthest: float,
) -> list[list[Overtake]]:
    """For clusters in descending cost, (C,): the costly ones above that each overtakes as one feature grows.

    Only clusters that are ``worth`` it, (C,), are looked at. ``x`` are the feature's values in the runs, ``furthest``
    is the largest value that was asked for.
    """
    out: list[list[Overtake]] = [[] for _ in laws]
    positive = x[x > 0]
    rivals = [j for j, one in enumerate(costly) if one and feature in laws[j]]
    if not positive.size or not rivals:
        return out
    grid = np.geomspace(positive.min(), max(FAR * positive.max(), furthest), GRID)
    race = _Race(laws, feature, grid)
    finish = {i: float(one[feature].mean(grid[-1:])[0]) for i, one in enumerate(laws) if worth[i] and feature in one}
    for i, mean in finish.items():
        for j in rivals:
            if j < i and mean > (1.0 + CLEARLY) * finish[j] and (crossing := race.crossing(i, j)):
                out[i].append(Overtake(j + 1, names[j], feature, *crossing))
    return out


@dataclass(slots=True)
class _Race:
    """Laws on a grid, evaluated when first needed."""

    laws: Sequence[Mapping[str, Growing]]
    feature: str
    grid: Array
    seen: dict[int, tuple[Array, Array, Array]] | None = None

    def crossing(self, i: int, j: int) -> tuple[float, float, float | None] | None:
        """Where i passes j for good, with the earliest and latest value that the bands allow; None where it does not."""
        (mine, my_low, my_high), (other, other_low, other_high) = self._lines(i), self._lines(j)
        at = _stays_above(self.grid, mine, other)
        if at is None or at <= self.grid[0]:
            return None  # above from the start: the largest cost, not growth, ranks the other one first
        low = _stays_above(self.grid, my_high, other_low)
        high = _stays_above(self.grid, my_low, other_high)
        return at, min(low or at, at), None if high is None else max(high, at)

    def _lines(self, i: int) -> tuple[Array, Array, Array]:
        self.seen = {} if self.seen is None else self.seen
        if i not in self.seen:
            growing = self.laws[i][self.feature]
            self.seen[i] = (growing.mean(self.grid), *growing.band(self.grid))
        return self.seen[i]


def _stays_above(grid: Array, one: Array, other: Array) -> float | None:
    """Value from which on the first line is above the second until the end; None where it is not at the end."""
    lead = np.log(np.maximum(one, 1e-300)) - np.log(np.maximum(other, 1e-300))
    if lead[-1] <= 0:
        return None
    below = np.flatnonzero(lead <= 0)
    if not below.size:
        return float(grid[0])
    i = int(below[-1])
    # Laws are nearly straight on logarithms between two values of the grid.
    part = -lead[i] / (lead[i + 1] - lead[i])
    return float(grid[i] * (grid[i + 1] / grid[i]) ** part)
