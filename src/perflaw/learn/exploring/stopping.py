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
from perflaw.learn.exploring.streams import BATCHES, Batches, halfwidth, slope
from perflaw.types.studies import Goal

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
