"""How far two trials of one configuration differ, which trials to trust, and what the chosen one really gives.

The best of many trials is partly lucky: its own value promises too much (winner's curse). What repetitions made after the
choice say does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[np.float64]

PRIOR_SD, PRIOR_WORTH = 0.05, 2.0
"""Relative scatter expected before any repetition, and how many repetitions that belief is worth."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval."""

    value: float
    """The mean."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end."""
    n: int
    """Trials it is of."""


def run_scatter(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the relative standard deviation of a trial about its configuration's mean, and its degrees of freedom.

    Pooled over configurations that were repeated, with ``PRIOR_SD`` as the prior.

    >>> sd, freedom = run_scatter([[100.0, 104.0], [50.0, 49.0], [10.0]])
    >>> 0.02 < sd < 0.05, freedom
    (True, 2.0)
    """
    squares, freedom = PRIOR_WORTH * PRIOR_SD**2, PRIOR_WORTH
    for group in groups:
        values = np.asarray(group, dtype=np.float64)
        mean = abs(float(values.mean())) if values.size else 0.0
        if values.size < 2 or mean == 0.0:
            continue
        squares += float(np.sum((values - values.mean()) ** 2)) / mean**2
        freedom += values.size - 1
    return float(np.sqrt(squares / freedom)), freedom - PRIOR_WORTH


def fair_estimate(values: Sequence[float], chosen_by: int, sd: float, freedom: float) -> Estimate:
    """Return what a chosen configuration gives, without the luck it was chosen for, with a 95 % interval.

    Args:
        values: its trials in order.
        chosen_by: how many of the first of them the choice was made by; later ones alone are fair. Where there are none, the
            estimate is of all and its interval reaches down by what the choice may have flattered.
        sd: relative scatter of a trial (``run_scatter``).
        freedom: its degrees of freedom.
    """
    fair = np.asarray(values[chosen_by:] or values, dtype=np.float64)
    mean = float(fair.mean())
    half = float(student.ppf(0.975, freedom + PRIOR_WORTH)) * sd * abs(mean) / np.sqrt(fair.size)
    lucky = 0.0 if values[chosen_by:] else sd * abs(mean)
    return Estimate(mean, mean - half - lucky, mean + half + lucky, int(fair.size))


def shrunk(means: Mapping[str, float], counts: Mapping[str, int], sd: float) -> dict[str, float]:
    """Return the means drawn together by what noise alone would scatter them (James and Stein 1961).

    ``means``: of configurations on the logarithm or in a unit with constant scatter ``sd``; ``counts``: trials of each.
    """
    names = list(means)
    y = np.array([means[name] for name in names])
    noise = sd**2 / np.array([counts[name] for name in names])
    between = max(0.0, float(np.var(y)) - float(noise.mean())) if y.size > 2 else float("inf")
    keep = np.ones_like(y) if np.isinf(between) else between / np.maximum(between + noise, 1e-300)
    return dict(zip(names, (y.mean() + keep * (y - y.mean())).tolist(), strict=True))


# ---- Races: repetitions go to configurations that are not told apart from the best; the others are out (Hoeffding
# races, F-race).
#
# Differences are tested after every repetition and the test stays valid however often it is looked at: the e-value of
# Student's t
# with a normal mixture over the effect (Lai 1976; Wang and Ramdas 2025), shared over all pairs.

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
