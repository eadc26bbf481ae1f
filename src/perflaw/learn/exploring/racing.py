"""Races: repetitions go to configurations that are not told apart from the best; the others are out (Hoeffding races, F-race).

Differences are tested after every repetition and the test stays valid however often it is looked at: the e-value of Student's t
with a normal mixture over the effect (Lai 1976; Wang and Ramdas 2025), shared over all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ALPHA = 0.05
"""Probability that the best one of all is ever thrown out."""
MIXTURE = 1.0
"""Worth of the mixture, in observations: where the test is sharpest."""


def survivors(values: Mapping[str, Sequence[float]], sign: float, alpha: float = ALPHA) -> list[str]:
    """Return the keys of configurations that may still be the best, best first.

    Args:
        values: key → its trials' values, all of one workload.
        sign: 1 where more is better, −1 where less is.
        alpha: probability of throwing out the best one.
    """
    logs = {key: _scores(each, sign, values) for key, each in values.items() if len(each)}
    means = {key: float(each.mean()) for key, each in logs.items()}
    order = sorted(means, key=lambda key: -means[key])
    if len(order) < 2:
        return order
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in logs.values())
    freedom = sum(each.size - 1 for each in logs.values())
    level = alpha / (len(order) - 1)
    best = order[0]
    return [best] + [
        key
        for key in order[1:]
        if evidence(means[best] - means[key], logs[best].size, logs[key].size, squares, freedom) < 1 / level
    ]


def again(values: Mapping[str, Sequence[float]], sign: float, alpha: float = ALPHA) -> list[str]:
    """Return which configurations to repeat, the most wanted first; empty where one has won.

    Among survivors the one with the fewest trials comes first: races are even.
    """
    left = survivors(values, sign, alpha)
    return sorted(left, key=lambda key: len(values[key])) if len(left) > 1 else []


def evidence(difference: float, n: int, m: int, squares: float, freedom: int) -> float:
    """Return the e-value against no difference of two means of n and m trials with pooled squares; ≥ 1/α rejects at any time.

    >>> evidence(0.0, 5, 5, 1.0, 8) < 1 < evidence(5.0, 5, 5, 1.0, 8)
    True
    """
    if freedom < 1 or difference <= 0:
        return 0.0
    worth = n * m / (n + m)
    if squares <= 0:
        return float("inf")
    u = worth * difference**2 / squares
    shrink = MIXTURE / (MIXTURE + worth)
    half = (freedom + 1) / 2
    return float(np.exp(0.5 * np.log(shrink) + half * (np.log1p(u) - np.log1p(shrink * u))))


def _scores(values: Sequence[float], sign: float, all_values: Mapping[str, Sequence[float]]) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if all(value > 0 for each in all_values.values() for value in each):
        return np.asarray(sign * np.log(array))
    return sign * array
