"""Which changes matter: beyond the minimum effect, the exactness of the measurement, and the scatter a stated law allows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

import numpy as np

from perflaw.check.claims import Claim
from perflaw.check.records import Records
from perflaw.language import distributions

MIN_TIME = 50.0
"""Times that differ by less than so many ns a call do not differ: what is taken out for the tracer is no more exact."""
STATED = 0.5
"""A mean within so many of the standard deviations that a law by hand states is within what it says."""
SCATTER = 3.0
"""Scatter that differs from the stated one by this factor is told."""


@dataclass(frozen=True, slots=True)
class Margin:
    """Logs of the smallest relevant effects."""

    up: float
    """Of dearer calls."""
    down: float
    """Of cheaper ones; infinite where no cost is too low."""
    stated: bool = False
    """The scatter that a law by hand states decides them."""

    def beyond(self, low: float, high: float) -> bool:
        """Whether an interval of log effects lies outside."""
        return low > self.up or high < -self.down

    def within(self, low: float, high: float, slack: float) -> bool:
        """Whether it lies inside, up to some slack."""
        return high <= self.up + slack and low >= -self.down - slack

    def towards(self, sign: float) -> float:
        """Of dearer calls for a positive sign, else of cheaper ones."""
        return self.up if sign > 0 else self.down


def margin_of(claim: Claim, records: Records, min_effect: float) -> Margin:
    """The minimum effect; for short calls the tracer's own exactness; for a law by hand half the scatter it states.

    A person who writes ``Norm(500, 5000)`` says that a call of 0.5 and one of 4,000 are both as expected. Of a learnt law
    the runs behind it say how exactly its mean is known, so that its scatter excuses nothing.
    """
    inside = records.inside
    mean = max(float(np.average(records.expected[inside], weights=records.weight[inside])), 1e-9)
    least = max(min_effect, 1.0 + MIN_TIME / mean) if claim.metric.unit == "ns" else min_effect
    if claim.baseline is not None:
        return Margin(log(least), log(least))
    wide = STATED * float(np.average(stated_scatter(claim, records), weights=records.weight[inside])) / mean
    down = max(log(least), -log(1.0 - wide)) if wide < 1.0 else inf
    return Margin(max(log(least), log(1.0 + wide)), down, stated=1.0 + wide > least)


def stated_scatter(claim: Claim, records: Records) -> np.ndarray:
    """Standard deviation that the law states at each record inside it, unit of the metric; 0 where it has none."""
    records = records.take(records.inside)
    out = np.zeros(records.cost.size)
    for number, one in enumerate(claim.clauses):
        rows = np.flatnonzero(records.clause == number)
        if rows.size:
            some = {name: column[rows] for name, column in records.values.items()}
            out[rows] = np.nan_to_num(distributions.scatter(one, some), posinf=0.0) * claim.factor
    return out


def other_scatter(claim: Claim, records: Records) -> str:
    """How far records scatter about a law by hand, where that is far from what it states; else empty."""
    if claim.baseline is not None or any(len(one.parts) > 1 for one in claim.clauses):
        return ""
    stated = stated_scatter(claim, records)
    records = records.take(records.inside)
    if stated.size < 2 or (stated <= 0).any():
        return ""
    # Median against median: a few slow calls are no scatter.
    z = (
        float(np.median(np.abs(records.cost - np.median(records.cost / records.expected) * records.expected) / stated))
        / 0.6745
    )
    if 1.0 / SCATTER <= z <= SCATTER:
        return ""
    return (
        f"calls scatter {z:.2g}x as far as the law states"
        if z >= 0.001
        else "calls scatter far less than the law states"
    )
