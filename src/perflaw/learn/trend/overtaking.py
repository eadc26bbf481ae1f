"""Overtaking points (trend-prof §4.2): from which size on a cluster costs more than one that is ranked above it.

Laws are compared on a grid from the smallest to 100 times the largest value of a feature. A crossing counts if the
order of the laws stays changed until the end of the grid. Its interval is where their bands could cross first and last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perflaw.learn.series import Learnt
from perflaw.learn.trend.data import Array
from perflaw.types import Overtake, PowerLaw

HORIZON = 100.0
"""Laws are compared up to so many times the largest value of the feature; beyond it they are no forecast."""
MIN_LEAD = 1e-3
"""A smaller lead at the end of the grid is a tie: two clusters of the same locations, and rounding."""
GRID = 160
"""Values of the feature at which laws are compared; crossings between them are interpolated."""

GrowthLaw = Learnt | PowerLaw
"""A law of the learner, or one of the paper."""
Lines = tuple[Array, Array, Array]
"""Mean of a law on the grid, its lower and its upper limit."""


def overtakes(
    laws: Sequence[Mapping[str, GrowthLaw]],
    names: Sequence[str],
    costly: Sequence[bool],
    full: Sequence[bool],
    x: Array,
    feature: str,
    largest: float,
) -> list[list[Overtake]]:
    """For clusters in descending cost, (C,): the costly clusters above that each overtakes as one feature grows.

    Only clusters that were learnt in ``full``, (C,), overtake. ``x`` are the feature's values in the runs, ``largest``
    is the largest value that predictions were asked for.
    """
    found: list[list[Overtake]] = [[] for _ in laws]
    positive = x[x > 0]
    rivals = [j for j, is_costly in enumerate(costly) if is_costly and feature in laws[j]]
    if not positive.size or not rivals:
        return found
    grid = np.geomspace(positive.min(), max(HORIZON * positive.max(), largest), GRID)
    lines: dict[int, Lines] = {}

    def lines_of(i: int) -> Lines:
        if i not in lines:
            lines[i] = (mean_of(laws[i][feature], feature, grid), *band_of(laws[i][feature], feature, grid))
        return lines[i]

    last = {
        i: float(mean_of(one[feature], feature, grid[-1:])[0])
        for i, one in enumerate(laws)
        if full[i] and feature in one
    }
    for i, mean in last.items():
        for j in rivals:
            if j >= i or mean <= (1.0 + MIN_LEAD) * last[j]:
                continue
            crossing = _crossing(grid, lines_of(i), lines_of(j))
            if crossing:
                found[i].append(Overtake(j + 1, names[j], feature, *crossing))
    return found


def mean_of(law: GrowthLaw, feature: str, x: Array) -> Array:
    """Expected cost at values of the feature, (k,)."""
    if isinstance(law, PowerLaw):
        return np.asarray(law.coefficient * x**law.exponent)
    return law.mean({feature: x})


def band_of(law: GrowthLaw, feature: str, x: Array) -> tuple[Array, Array]:
    """Limits of the mean, (k,) each.

    The limits of a power law turn about the point of its first prediction with the limits of the exponent.
    """
    if not isinstance(law, PowerLaw):
        _, low, high, _, _ = law.band({feature: x})
        return low, high
    if law.exponent_low is None or law.exponent_high is None or not law.predictions:
        return np.zeros_like(x), np.full_like(x, 1e300)
    mean, pivot = mean_of(law, feature, x), law.predictions[0]
    distance = x / pivot.features[feature]
    limits = [mean * distance ** (exponent - law.exponent) for exponent in (law.exponent_low, law.exponent_high)]
    return np.minimum(*limits) * (pivot.mean_low / pivot.mean), np.maximum(*limits) * (pivot.mean_high / pivot.mean)


def _crossing(grid: Array, lines: Lines, rival: Lines) -> tuple[float, float, float | None] | None:
    """Where a law passes its rival for good, with the earliest and latest value that the bands allow; None if never."""
    (mean, low, high), (rival_mean, rival_low, rival_high) = lines, rival
    at = _stays_above(grid, mean, rival_mean)
    if at is None or at <= grid[0]:
        return None  # above from the start: the largest cost, not growth, ranks the rival first
    earliest = _stays_above(grid, high, rival_low)
    latest = _stays_above(grid, low, rival_high)
    return at, min(earliest or at, at), None if latest is None else max(latest, at)


def _stays_above(grid: Array, line: Array, other: Array) -> float | None:
    """Value from which on a line is above the other until the end of the grid; None if it is not at the end."""
    lead = np.log(np.maximum(line, 1e-300)) - np.log(np.maximum(other, 1e-300))
    if lead[-1] <= 0:
        return None
    below = np.flatnonzero(lead <= 0)
    if not below.size:
        return float(grid[0])
    i = int(below[-1])
    # On logarithms laws are nearly straight between two values of the grid.
    part = -lead[i] / (lead[i + 1] - lead[i])
    return float(grid[i] * (grid[i + 1] / grid[i]) ** part)
