"""Races, which repeat the configurations that may still be the best, and trials that are ended because they cannot win.

A race gives repetitions to the configurations that may be the best and drops the others (Hoeffding races, F-race).
Differences are tested after every repetition, and the test stays valid however often it is made: it is the e-value of
Student's t with a normal mixture over the effect (Lai 1976; Wang and Ramdas 2025), shared over all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perflaw.types.studies import Goal

PRIOR_SD, PRIOR_WEIGHT = 0.05, 2.0
"""Relative scatter that is expected before any repetition, and the number of repetitions that this prior counts for."""
RACE_ALPHA = 0.05
"""Probability that the best configuration is ever dropped."""
RACE_MIXTURE = 1.0
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


def survivors(values: Mapping[str, Sequence[float]], sign: float, alpha: float = RACE_ALPHA) -> list[str]:
    """Return the keys of configurations that may still be the best, the best first, by the values of their trials.

    All trials are under one workload. ``sign`` is 1 where more is better, −1 where less is; ``alpha`` is the
    probability that the best configuration is dropped.
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


def to_repeat(values: Mapping[str, Sequence[float]], sign: float, alpha: float = RACE_ALPHA) -> list[str]:
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
    shrink = RACE_MIXTURE / (RACE_MIXTURE + weight)
    half = (freedom + 1) / 2
    return float(np.exp(0.5 * np.log(shrink) + half * (np.log1p(u) - np.log1p(shrink * u))))


# ---- Early stop: whether a trial that runs can still become the best; it is ended only when it cannot. Three things make a
# slow start look like a loser. Readings scatter, in bursts; therefore the mean has an anytime-valid interval over batch means,
# widened for their autocorrelation, which holds however often it is looked at. Systems warm up; therefore no trial is ended
# while its rate still rises, the rise that may still come is granted, and nothing is judged before earlier trials of the study
# had become steady. And the best trial so far may have been lucky; therefore its own uncertainty is granted too.

Array = NDArray[np.float64]

BATCHES = 64
"""Number of batches of a trial's whole time; it is fixed beforehand, so that judging often changes nothing."""
MIXTURE = 2.0
"""Weight of the mixture over the effect, in batches: the number of batches at which the interval is narrowest."""
WARM_UP_STEP, WARM_UP_T = 0.05, 6.0
"""Smallest difference of a warm-up from the rest: relative to the rest, and in standard errors."""
MAX_WARM_UPS = 4
"""Largest number of warm-ups that are cut off one after the other."""
MANY_TRIALS, STEADY_QUANTILE = 8, 0.75
"""Number of trials from which on a quantile of their steady times counts, and that quantile; of fewer trials, the latest."""
ALPHA = 1 / 300
"""Probability, for one trial, that the interval over its readings ever misses."""
MIN_BATCHES, MIN_SHARE_OF_TIME = 12, 0.2
"""Number of batches, and share of the trial's time, from which on a trial is judged."""
MIN_SIGMAS = 2.0
"""Standard deviations of trials that must lie between the trial and the best so far."""
RISE_T, SLOPE_MARGIN = 2.0, 1.0
"""t value from which on a rise is established; standard errors by which the true slope is granted to be greater."""


# ---- Readings of one trial over its time.


class Batches:
    """Means over equal parts of the trial's time; the memory they take does not grow with the readings."""

    def __init__(self, total_s: float) -> None:
        """``total_s`` is the trial's whole time."""
        self.total_s = total_s
        self.sums, self.counts = np.zeros(BATCHES), np.zeros(BATCHES)
        self.latest = 0
        """Place of the latest batch with a reading; it may still get others."""

    def add(self, at_s: float, value: float) -> None:
        """Take a reading that ended ``at_s`` seconds after the start."""
        share = at_s / self.total_s if self.total_s > 0 else 0.0
        place = int(min(BATCHES - 1, max(0, np.ceil(share * BATCHES - 1e-9) - 1)))
        self.latest = max(self.latest, place)
        self.sums[place] += value
        self.counts[place] += 1

    def complete(self) -> Array:
        """Return the means of complete batches with readings, (m,), in the order of time."""
        places = np.flatnonzero(self.counts[: self.latest])
        return self.sums[places] / self.counts[places]


def halfwidth(means: Array, alpha: float) -> float:
    """Return half the width of the anytime-valid interval for the mean of batches (m,); infinite for too few.

    Student's t with a normal mixture over the effect (Lai 1976; Wang and Ramdas 2025, "Anytime-valid t-tests"). The variance is
    widened by (1 + ρ)/(1 − ρ) for an autoregression of the batch means.

    >>> halfwidth(np.array([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.1] * 3), 0.001) < 0.1
    True
    """
    m = means.size
    if m < 4:
        return float("inf")
    growth = float(np.exp(2.0 / m * (-np.log(alpha) + 0.5 * np.log((m + MIXTURE) / MIXTURE))))
    shrink = MIXTURE / (MIXTURE + m)
    if growth * shrink >= 1.0:
        return float("inf")
    t_square = (m - 1) * (growth - 1.0) / (1.0 - growth * shrink)
    return float(np.sqrt(t_square * np.var(means, ddof=1) * inflation(means) / m))


def inflation(values: Array) -> float:
    """Return the factor, at least 1, by which autocorrelation widens the variance of the mean of values (m,)."""
    centred = values - values.mean()
    square = float(centred @ centred)
    if values.size < 4 or square <= 0.0:
        return 1.0
    rho = float(centred[1:] @ centred[:-1]) / square
    rho = min(0.9, max(0.0, rho + (1.0 + 4.0 * max(rho, 0.0)) / values.size))  # its bias in short series (Kendall 1954)
    return (1.0 + rho) / (1.0 - rho)


def slope(means: Array) -> tuple[float, float]:
    """Return the rise from batch to batch of means (m,), and its standard error."""
    m = means.size
    if m < 4:
        return 0.0, float("inf")
    x = np.arange(m) - (m - 1) / 2.0
    rise = float(x @ means / (x @ x))
    residuals = means - means.mean() - rise * x
    return rise, float(np.sqrt(residuals @ residuals / (m - 2) / (x @ x)))


def steady_from(at_s: Sequence[float], values: Sequence[float], goal: Goal | None = None) -> float:
    """Return when a complete trial had become steady, in seconds; 0 where it was so from the start.

    The front that differs most from the rest is cut off repeatedly, as long as it differs by more than 5 % and by more
    than chance. Given a goal, only a front that is worse is cut off. ``at_s`` are the ends of the readings ``values``.
    """
    total = max(at_s, default=0.0)
    batches = Batches(total * (1 + 1e-9) + 1e-12)
    for at, value in zip(at_s, values, strict=True):
        batches.add(at, value)
    batches.latest = BATCHES
    means = (-1.0 if goal == "min" else 1.0) * batches.complete()
    start = 0
    for _ in range(MAX_WARM_UPS):
        rest, length, greatest = means[start:], 0, WARM_UP_T
        for cut in range(1, rest.size - 3):
            before, after = rest[:cut], rest[cut:]
            gap = float(after.mean() - before.mean())
            gap = abs(gap) if goal is None else gap
            residuals = np.concatenate([before - before.mean(), after - after.mean()])
            sd = float(np.sqrt(residuals @ residuals / max(1, rest.size - 2) * inflation(residuals)))
            t = gap / max(sd * np.sqrt(1 / cut + 1 / after.size), 1e-300)
            if gap > WARM_UP_STEP * abs(float(after.mean())) and t > greatest:
                length, greatest = cut, t
        if not length:
            break
        start += length
    return start / max(1, means.size) * total


def usually_steady(known: Sequence[float]) -> float:
    """Return when three in four of a study's trials had become steady, or all of a few; 0 where none is known.

    It is not the latest of many trials: one that was disturbed in its middle would keep all others from being judged.
    """
    if not len(known):
        return 0.0
    return float(np.quantile(known, STEADY_QUANTILE if len(known) >= MANY_TRIALS else 1.0, method="higher"))


# ---- The judgement.


class Stopper:
    """Judges one trial while it runs."""

    def __init__(
        self, goal: Goal, incumbent: Sequence[float], total_s: float, run_sd: float | None = None, steady_s: float = 0.0
    ) -> None:
        """Begin a trial that will be measured for ``total_s``; without values of an ``incumbent`` it is never stopped.

        The incumbent's values are those of the best configuration so far. ``run_sd`` and ``steady_s`` are what
        :func:`run_scatter` and :func:`usually_steady` give; without ``run_sd`` the scatter is that of the incumbent's
        trials and a prior.
        """
        self.sign = -1.0 if goal == "min" else 1.0
        self.incumbent = np.asarray(incumbent, dtype=np.float64)
        self.total_s, self.steady_s = total_s, steady_s
        self.run_sd = run_scatter([list(incumbent)])[0] if run_sd is None else run_sd
        self.batches = Batches(total_s)
        self.at_s = 0.0
        self._judged, self._verdict = 0, ""

    def add(self, at_s: float, value: float, n: int = 1) -> None:
        """Take a reading: its end in seconds after the trial became ready, its value, its records (0: it is ignored)."""
        self.at_s = max(self.at_s, at_s)
        if n > 0 and np.isfinite(value):
            self.batches.add(at_s, value)

    def verdict(self) -> str:
        """Return why this trial cannot win any more; empty where it can. It is judged after each batch."""
        if self.batches.latest != self._judged:
            self._judged, self._verdict = self.batches.latest, self._judge()
        return self._verdict

    def _judge(self) -> str:
        means = self.sign * self.batches.complete()
        if not self.incumbent.size or not np.isfinite(self.total_s) or self.total_s <= 0 or means.size < MIN_BATCHES:
            return ""
        after_steady = self.steady_s + (self.total_s / BATCHES if self.steady_s > 0 else 0.0)
        if self.at_s < max(MIN_SHARE_OF_TIME * self.total_s, after_steady):
            return ""
        # The trial has to reach the incumbent's mean, less the scatter of trials of one configuration.
        best = self.sign * float(self.incumbent.mean())
        needed = best - MIN_SIGMAS * self.run_sd * abs(best) * float(np.sqrt(1.0 + 1.0 / self.incumbent.size))
        # It may end at the upper end of the interval over the last three quarters of the readings, or of the projected
        # rise: what the upper end of the slope brings over the time that is left.
        recent = means[means.size // 4 :]
        reachable = float(recent.mean()) + halfwidth(recent, ALPHA)
        left = max(0.0, BATCHES - means.size)
        rises = False
        for part in (means[means.size // 2 :], means[-max(4, means.size // 4) :]):
            rise, error = slope(part)
            rises = rises or (rise > RISE_T * error and rise * left > 0.01 * abs(float(part.mean())))
            projected = float(part.mean()) + max(0.0, rise + SLOPE_MARGIN * error) * left * (part.size > 5)
            reachable = max(reachable, projected)
        if rises or reachable >= needed:
            return ""
        now = float(means[len(means) // 2 :].mean())
        return (
            f"cannot win: {self.sign * now:.4g} after {self.at_s:.3g} s and steady, at best {self.sign * reachable:.4g}, "
            f"against {float(self.incumbent.mean()):.4g} of the best so far"
        )
