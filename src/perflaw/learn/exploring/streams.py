"""Readings of one trial over its time: batch means, how unsure their mean is, whether they rise, when they became steady."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perflaw.types.studies import Goal

Array = NDArray[np.float64]

BATCHES = 64
"""Batches of a trial's whole time: fixed beforehand, so that looking often changes nothing."""
MIXTURE = 2.0
"""Worth of the mixture over the effect, in batches: where the interval is sharpest."""
STEP, STEP_T = 0.05, 6.0
"""A warm-up: the part before lies at least so far (relative) and so many standard errors off the part after."""


class Batches:
    """Means over equal parts of the trial's time; memory does not grow with the readings."""

    def __init__(self, total_s: float) -> None:
        self.total_s = total_s
        self.sums, self.counts = np.zeros(BATCHES), np.zeros(BATCHES)
        self.latest = 0

    def add(self, at_s: float, value: float) -> None:
        """Take a reading that ended ``at_s`` seconds after the start."""
        share = at_s / self.total_s if self.total_s > 0 else 0.0
        place = int(min(BATCHES - 1, max(0, np.ceil(share * BATCHES - 1e-9) - 1)))
        self.latest = max(self.latest, place)
        self.sums[place] += value
        self.counts[place] += 1

    def complete(self) -> Array:
        """Return the means of batches that are over and have readings, (m,), in order of time."""
        over = np.flatnonzero(self.counts[: self.latest])
        return self.sums[over] / self.counts[over]


def halfwidth(means: Array, alpha: float) -> float:
    """Return half the width of the anytime-valid interval for the mean of batches (m,); infinite for too few.

    Student's t with a normal mixture over the effect (Lai 1976; Wang and Ramdas 2025, "Anytime-valid t-tests"), the
    variance widened by (1 + ρ)/(1 − ρ) for an autoregression of the batch means.

    >>> halfwidth(np.array([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.1] * 3), 0.001) < 0.1
    True
    """
    m = means.size
    if m < 4:
        return float("inf")
    grown = float(np.exp(2.0 / m * (-np.log(alpha) + 0.5 * np.log((m + MIXTURE) / MIXTURE))))
    shrink = MIXTURE / (MIXTURE + m)
    if grown * shrink >= 1.0:
        return float("inf")
    t_square = (m - 1) * (grown - 1.0) / (1.0 - grown * shrink)
    return float(np.sqrt(t_square * np.var(means, ddof=1) * inflation(means) / m))


def inflation(values: Array) -> float:
    """Return by how much autocorrelation widens the variance of the mean of values (m,): at least 1."""
    centred = values - values.mean()
    square = float(centred @ centred)
    if values.size < 4 or square <= 0.0:
        return 1.0
    rho = float(centred[1:] @ centred[:-1]) / square
    rho = min(0.9, max(0.0, rho + (1.0 + 4.0 * max(rho, 0.0)) / values.size))  # its bias in short series (Kendall 1954)
    return (1.0 + rho) / (1.0 - rho)


def slope(means: Array) -> tuple[float, float]:
    """Return the rise a batch of batch means (m,), and its standard error."""
    m = means.size
    if m < 4:
        return 0.0, float("inf")
    x = np.arange(m) - (m - 1) / 2.0
    rise = float(x @ means / (x @ x))
    rest = means - means.mean() - rise * x
    return rise, float(np.sqrt(rest @ rest / (m - 2) / (x @ x)))


def steady_from(at_s: Sequence[float], values: Sequence[float], goal: Goal | None = None) -> float:
    """Return from when on a whole trial was steady, in seconds; 0 where it was so from the start.

    ``at_s``: ends of the readings, ``values``: theirs. The front that differs most from the rest is cut off, again and again,
    while it differs by more than 5 % and more than chance; given a goal, only a front that is worse is.
    """
    total = max(at_s, default=0.0)
    batches = Batches(total * (1 + 1e-9) + 1e-12)
    for at, value in zip(at_s, values, strict=True):
        batches.add(at, value)
    batches.latest = BATCHES
    means = (-1.0 if goal == "min" else 1.0) * batches.complete()
    either = goal is None
    start = 0
    for _ in range(4):
        cut = _cut(means[start:], either)
        if not cut:
            break
        start += cut
    return start / max(1, means.size) * total


def _cut(means: Array, either: bool) -> int:
    """Return how many leading batches belong to a warm-up; 0 for none."""
    best, most = 0, STEP_T
    for cut in range(1, means.size - 3):
        before, after = means[:cut], means[cut:]
        gap = float(after.mean() - before.mean())
        gap = abs(gap) if either else gap
        rest = np.concatenate([before - before.mean(), after - after.mean()])
        sd = float(np.sqrt(rest @ rest / max(1, means.size - 2) * inflation(rest)))
        t = gap / max(sd * np.sqrt(1 / cut + 1 / after.size), 1e-300)
        if gap > STEP * abs(float(after.mean())) and t > most:
            best, most = cut, t
    return best


def usually_steady(known: Sequence[float]) -> float:
    """Return when three in four of a study's trials had become steady, of fewer than eight all; 0 where none is known.

    Not the latest of many: a trial that something disturbed in its middle would keep all others from being judged.
    """
    return float(np.quantile(known, 0.75 if len(known) >= 8 else 1.0, method="higher")) if len(known) else 0.0
