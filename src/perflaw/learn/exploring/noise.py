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
