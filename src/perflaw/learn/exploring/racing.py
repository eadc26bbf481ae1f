"""Repetitions: how far trials of one configuration differ, and races, which repeat what may still be the best.

A race gives repetitions to the configurations that may be the best and drops the others (Hoeffding races, F-race).
Differences are tested after every repetition, and the test stays valid however often it is made: it is the e-value of
Student's t with a normal mixture over the effect (Lai 1976; Wang and Ramdas 2025), shared over all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

PRIOR_SD, PRIOR_WEIGHT = 0.05, 2.0
"""Relative scatter that is expected before any repetition, and the number of repetitions that this prior counts for."""
ALPHA = 0.05
"""Probability that the best configuration is ever dropped."""
MIXTURE = 1.0
"""Weight of the mixture, in observations: the number of observations at which the test is most powerful."""


def run_scatter(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the relative standard deviation of a trial about its configuration's mean, and its degrees of freedom.

    The estimate is pooled over configurations that were repeated, with ``PRIOR_SD`` as the prior.

    >>> sd, freedom = run_scatter([[100.0, 104.0], [50.0, 49.0], [10.0]])
    >>> 0.02 < sd < 0.05, freedom
    (True, 2.0)
    """
    squares, freedom = PRIOR_WEIGHT * PRIOR_SD**2, PRIOR_WEIGHT
    for group in groups:
        values = np.asarray(group, dtype=np.float64)
        mean = abs(float(values.mean())) if values.size else 0.0
        if values.size < 2 or mean == 0.0:
            continue
        squares += float(np.sum((values - values.mean()) ** 2)) / mean**2
        freedom += values.size - 1
    return float(np.sqrt(squares / freedom)), freedom - PRIOR_WEIGHT


def survivors(values: Mapping[str, Sequence[float]], sign: float, alpha: float = ALPHA) -> list[str]:
    """Return the keys of configurations that may still be the best, the best first.

    Args:
        values: values of the trials by configuration, all under one workload.
        sign: 1 where more is better, −1 where less is better.
        alpha: probability that the best configuration is dropped.
    """
    positive = all(value > 0 for several in values.values() for value in several)
    scores = {
        key: sign * (np.log(several) if positive else np.asarray(several, dtype=np.float64))
        for key, several in values.items()
        if len(several)
    }
    means = {key: float(several.mean()) for key, several in scores.items()}
    order = sorted(means, key=lambda key: -means[key])
    if len(order) < 2:
        return order
    squares = sum(float(((several - several.mean()) ** 2).sum()) for several in scores.values())
    freedom = sum(several.size - 1 for several in scores.values())
    level = alpha / (len(order) - 1)
    best = order[0]
    return [best] + [
        key
        for key in order[1:]
        if evidence(means[best] - means[key], scores[best].size, scores[key].size, squares, freedom) < 1 / level
    ]


def to_repeat(values: Mapping[str, Sequence[float]], sign: float, alpha: float = ALPHA) -> list[str]:
    """Return the configurations to repeat, those with the fewest trials first; empty where one has won."""
    left = survivors(values, sign, alpha)
    return sorted(left, key=lambda key: len(values[key])) if len(left) > 1 else []


def evidence(difference: float, n: int, m: int, squares: float, freedom: int) -> float:
    """Return the e-value against equal means of n and m trials with a pooled sum of squares; ≥ 1/α rejects at any time.

    >>> evidence(0.0, 5, 5, 1.0, 8) < 1 < evidence(5.0, 5, 5, 1.0, 8)
    True
    """
    if freedom < 1 or difference <= 0:
        return 0.0
    weight = n * m / (n + m)
    if squares <= 0:
        return float("inf")
    u = weight * difference**2 / squares
    shrink = MIXTURE / (MIXTURE + weight)
    half = (freedom + 1) / 2
    return float(np.exp(0.5 * np.log(shrink) + half * (np.log1p(u) - np.log1p(shrink * u))))
