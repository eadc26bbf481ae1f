"""Whether a trial that runs can still win: ended early only when it cannot, however often one looks.

Three things make a slow start look like a loser, and each has its answer. Readings scatter, in bursts: an anytime-valid
interval over batch means, widened for their autocorrelation (``streams.py``). Systems warm up: never while the rate still
rises, and what the rise may still bring is granted; not before earlier trials of the study had become steady. And the best so
far was lucky or not: its own interval stands between.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.noise import run_scatter
from perflaw.types.studies import Goal

# ---- Readings of one trial over its time: batch means, how unsure their mean is, whether they rise, when they became
# steady.

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


Array = NDArray[np.float64]

ALPHA = 1 / 300
"""Probability, for one trial, that the interval over its readings ever misses."""
FEWEST, SOONEST = 12, 0.2
"""Batches, and share of the trial's time, before which nothing is judged."""
SURE = 2.0
"""Standard deviations of trials that must lie between the trial and the best so far."""
RISES, UPPER = 2.0, 1.0
"""From which t on a rise counts as one; how far above its estimate a slope is granted to lie."""


class Stopper:
    """Judges one trial while it runs."""

    def __init__(
        self,
        goal: Goal,
        incumbent: Sequence[float],
        total_s: float,
        run_sd: float | None = None,
        steady_s: float = 0.0,
    ) -> None:
        """Begin a trial.

        Args:
            goal: which way is better.
            incumbent: values of the trials of the best configuration so far; empty: nothing is ever stopped.
            total_s: how long the trial is to be measured.
            run_sd: relative scatter from trial to trial (``noise.run_scatter``); None: of the incumbent's trials and a prior.
            steady_s: when earlier trials of the study usually had become steady (``streams.usually_steady``).
        """
        self.sign = -1.0 if goal == "min" else 1.0
        self.incumbent = np.asarray(incumbent, dtype=np.float64)
        self.total_s, self.steady_s = total_s, steady_s
        self.run_sd = run_scatter([list(incumbent)])[0] if run_sd is None else run_sd
        self.batches = Batches(total_s)
        self.at_s = 0.0
        self.judged, self.answer = 0, ""

    def add(self, at_s: float, value: float, n: int = 1) -> None:
        """Take a reading: its end in seconds after the trial became ready, its value, records it is of (0: ignored)."""
        self.at_s = max(self.at_s, at_s)
        if n > 0 and np.isfinite(value):
            self.batches.add(at_s, value)

    def verdict(self) -> str:
        """Return why this trial cannot win any more; empty where it can. Judged anew once a batch is over."""
        if self.batches.latest != self.judged:
            self.judged, self.answer = self.batches.latest, self._judge()
        return self.answer

    def _judge(self) -> str:
        means = self.sign * self.batches.complete()
        if not self._may_judge(means):
            return ""
        bar = self._bar()
        hope, rises = self._hope(means)
        if rises or hope >= bar:
            return ""
        now = float(means[len(means) // 2 :].mean())
        return (
            f"cannot win: {self.sign * now:.4g} after {self.at_s:.3g} s and steady, {self.sign * hope:.4g} at the very best, "
            f"against {float(self.incumbent.mean()):.4g} of the best so far"
        )

    def _may_judge(self, means: Array) -> bool:
        if not self.incumbent.size or not np.isfinite(self.total_s) or self.total_s <= 0 or means.size < FEWEST:
            return False
        after = self.steady_s + (self.total_s / BATCHES if self.steady_s > 0 else 0.0)
        return self.at_s >= max(SOONEST * self.total_s, after)

    def _bar(self) -> float:
        """What the trial must be able to reach: the incumbent's mean less what trials of one configuration differ by."""
        mean = self.sign * float(self.incumbent.mean())
        return mean - SURE * self.run_sd * abs(mean) * float(np.sqrt(1.0 + 1.0 / self.incumbent.size))

    def _hope(self, means: Array) -> tuple[float, bool]:
        """Return the highest level that the trial may end at, and whether it still rises.

        The level: the highest upper end over all readings, over the later three quarters, and over the later half. The rise:
        what the upper end of the slope brings over the time that is left.
        """
        level = _upper(means[means.size // 4 :])
        left = max(0.0, BATCHES - means.size)
        rises, projected = False, level
        for part in (means[means.size // 2 :], means[-max(4, means.size // 4) :]):
            rise, error = slope(part)
            rises = rises or (rise > RISES * error and rise * left > 0.01 * abs(float(part.mean())))
            projected = max(projected, float(part.mean()) + max(0.0, rise + UPPER * error) * left * (part.size > 5))
        return projected, rises


def _upper(means: Array) -> float:
    """Upper end of the interval; infinite where there are too few batches for one."""
    return float(means.mean()) + halfwidth(means, ALPHA) if means.size >= 4 else float("-inf")
