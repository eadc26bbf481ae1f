"""How far the cost of runs is from a law: for each run the log of observed over expected cost, by several statistics.

``total`` is the runs' whole cost over the expected cost, which is what a person pays. ``typical`` is the factor by which
costs must be divided so that the records' probabilities under the law (probability integral transform) have mean one
half; a few slow calls do not move it. Each is computed over all records, over each scope, and (totals) over the larger
inputs, because many laws break from some size on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from perflaw.check.claims import Baseline, Claim
from perflaw.check.evalues import Effects
from perflaw.check.law_records import Array, LawRecords, cost_probability
from perflaw.laws import distributions
from perflaw.learn.series.series import numbered

CUT_QUANTILES = (0.5, 0.875)
"""Records are split by size at these quantiles of a feature."""
MAX_FEATURES, MAX_SCOPES = 3, 6
"""Number of features and scopes that have views of their own."""
TYPICAL_SAMPLE = 200
"""Number of records of a run that its typical effect is computed from."""
MIN_RECORDS, MIN_PART_RECORDS = 3, 5
"""Smallest number of records of the view of everything, and of a view of a part."""
BISECTIONS = 16
"""Bisections of the interval of the typical effect: to a hundredth of a percent."""
MIN_TIME = 50.0
"""Times that differ by less than so many ns a call are equal: the tracer's own cost is not known more exactly."""
STATED_PART = 0.5
"""A mean that differs by less than this part of the deviation stated in a hand-written law agrees with the law."""
SCATTER_FACTOR = 3.0
"""Scatter that differs from the stated one by more than this factor is reported."""


@dataclass(frozen=True, slots=True)
class CostView:
    """The effects of a component's runs by one statistic, over some of its records."""

    name: str
    """Its key in the twin: ``total``, ``typical [1]``, ``total n >= 500``."""
    since: str
    """Size from which on records count, such as ``n = 500``; empty for all sizes."""
    clause: int
    """Index of the scope whose records count; −1 for all scopes."""
    effects: Effects
    """Effects of the runs, (R,)."""
    records: int
    """Number of records."""


def cuts_of(claim: Claim, records: LawRecords) -> dict[str, tuple[float, ...]]:
    """Values of the law's numeric features from which on inputs count as large."""
    cuts: dict[str, tuple[float, ...]] = {}
    for name in sorted(claim.names)[:MAX_FEATURES]:
        column = records.values[name]
        if column.dtype.kind == "U" or not records.inside.any():
            continue
        values = np.asarray(column[records.inside], dtype=np.float64)
        quantiles = np.quantile(values, CUT_QUANTILES, method="inverted_cdf")
        quantiles = np.unique(quantiles[quantiles > values.min()])
        if quantiles.size:
            cuts[name] = tuple(float(value) for value in quantiles)
    return cuts


def baseline_of(claim: Claim, records: LawRecords) -> Baseline:
    """Effects of the runs that a law was learnt from."""
    cuts = cuts_of(claim, records)
    inside = records.take(records.inside)
    effects = {view.name: view.effects for view in views(claim, records, cuts)}
    return Baseline(cuts, effects, scatter_of(inside) if inside.cost.size else 0.0)


def views(
    claim: Claim, records: LawRecords, cuts: Mapping[str, tuple[float, ...]], scatter: float = 0.0
) -> Iterator[CostView]:
    """Every view that has enough records inside the law's scope.

    ``scatter`` is the least mean squared relative deviation of an invocation: that of the law's own runs.
    """
    records = records.take(records.inside)
    # Key, size from which on, scope and records of each part.
    parts: list[tuple[str, str, int, NDArray[np.bool_]]] = [("", "", -1, np.ones(records.cost.size, dtype=bool))]
    if len(claim.clauses) > 1:
        numbers = range(min(len(claim.clauses), MAX_SCOPES))
        parts += [(f" [{number}]", "", number, records.clause == number) for number in numbers]
    for name, values in cuts.items():
        column = np.asarray(records.values[name], dtype=np.float64)
        for value in values:
            parts.append((f" {name} >= {value:.6g}", f"{name} = {value:.6g}", -1, column >= value * (1 - 1e-9)))

    for key, since, clause, mask in parts:
        part = records.take(mask)
        if part.cost.size < (MIN_PART_RECORDS if key else MIN_RECORDS):
            continue
        yield CostView(f"total{key}", since, clause, total_effects(part, scatter), part.cost.size)
        if not since and np.mean(part.cost > 0) > 0.9:
            # Log of the factor that brings the mean probability of each run's records to one half, and its variance.
            names, run = numbered(part.run)
            rows = sample_of_runs(part.weight, run)
            sampled, run = part.take(rows), run[rows]
            error = 0.5 / np.sqrt(3.0 * np.bincount(run, minlength=names.size))
            # A smaller divisor leaves a larger cost, and more probability below it.
            targets = np.clip(0.5 + np.outer((1.0, -1.0), error), 0.02, 0.98)
            low, high = _log_factors(claim, sampled, run, targets)
            effects = Effects((low + high) / 2.0, ((high - low) / 2.0) ** 2)
            yield CostView(f"typical{key}", since, clause, effects, part.cost.size)


def total_effects(records: LawRecords, scatter: float = 0.0) -> Effects:
    """Log of each run's cost over its expected cost, in order of the runs; a unit of cost on both sides avoids log 0.

    A run whose cost is below 0 after the tracer's own cost is subtracted counts as one without cost. A sum whose
    relative variance is v is lognormal with variance log(1 + v) of its logarithm, which stays a number where a few calls
    cost many orders of magnitude more than the law says.
    """
    names, run = numbered(records.run)
    runs, w, y, m = names.size, records.weight, records.cost, records.expected
    observed, expected = np.maximum(np.bincount(run, w * y, runs), 0.0), np.bincount(run, w * m, runs)
    unit = np.bincount(run, w, runs)
    ratio = (observed + unit) / (expected + unit)
    count = np.bincount(run, minlength=runs)
    own = np.bincount(run, (w * (y - ratio[run] * m)) ** 2, runs) * count / np.maximum(count - 1, 1)
    # The scatter of a run of few records is uncertain: at least that of all runs, or of the law's own runs, counts.
    pooled = max(scatter, scatter_of(records)) * np.bincount(run, (w * (ratio[run] * m + 1.0)) ** 2, runs)
    return Effects(np.log(ratio), np.log1p(np.maximum(own, pooled) / (observed + unit) ** 2))


def scatter_of(records: LawRecords) -> float:
    """Mean squared relative deviation of invocations from their expected cost, after scaling it to their level."""
    w, y, m = records.weight, records.cost, records.expected
    ratio = (max(float((w * y).sum()), 0.0) + w.sum()) / ((w * m).sum() + w.sum())
    return float((w * (y - ratio * m) ** 2).sum() / (w * (ratio * m + 1.0) ** 2).sum())


def sample_rows(weight: Array, rows: NDArray[np.intp], most: int = TYPICAL_SAMPLE) -> NDArray[np.intp]:
    """At most ``most`` of the rows, each invocation equally likely: systematic sampling by cumulated weight."""
    total = np.cumsum(weight[rows])
    count = min(most, max(rows.size, 1))
    marks = (np.arange(count) + 0.5) / count * total[-1]
    return np.asarray(rows[np.minimum(np.searchsorted(total, marks), rows.size - 1)])


def sample_of_runs(weight: Array, run: NDArray[np.intp], most: int = TYPICAL_SAMPLE) -> NDArray[np.intp]:
    """:func:`sample_rows` of every run, run by run; ``run`` (n,) is the number of each row's run."""
    order, count = np.argsort(run, kind="stable"), np.bincount(run)
    if count.max(initial=0) <= most and weight.size and np.ptp(weight) == 0:
        return order  # every invocation is drawn
    return np.concatenate([sample_rows(weight, rows, most) for rows in np.split(order, np.cumsum(count)[:-1])])


def _log_factors(claim: Claim, records: LawRecords, run: NDArray[np.intp], targets: Array) -> Array:
    """Logs of the factors at which each run's mean probability reaches ``targets`` (T, R), by bisection; (T, R).

    ``run`` is the number of each record's run, increasing.
    """
    starts, count = np.flatnonzero(np.r_[True, np.diff(run) > 0]), np.bincount(run)
    ratio = np.log(np.maximum(records.cost, 1e-9) / np.maximum(records.expected, 1e-9))
    low = np.maximum(np.minimum.reduceat(ratio, starts) - 1.0, -20.0) + np.zeros(targets.shape)
    high = np.minimum(np.maximum.reduceat(ratio, starts) + 1.0, 20.0) + np.zeros(targets.shape)
    probability = cost_probability(claim, records)
    unknown = bool(np.isnan(probability(records.cost)).any())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        below = probability(records.cost * np.exp(-middle)[:, run])
        if unknown:
            below = np.nan_to_num(below, nan=0.5)
        above = np.add.reduceat(below, starts, axis=1) / count > targets
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2.0)


@dataclass(frozen=True, slots=True)
class Margin:
    """Logs of the smallest effects that matter."""

    up: float
    """For higher costs."""
    down: float
    """For lower costs; infinite if no cost is too low."""
    stated: bool = False
    """The scatter that a hand-written law states decides the margin."""

    def beyond(self, low: float, high: float) -> bool:
        """Whether an interval of log effects lies outside of the margin."""
        return low > self.up or high < -self.down

    def within(self, low: float, high: float, slack: float) -> bool:
        """Whether an interval of log effects lies inside of the margin, up to some slack."""
        return high <= self.up + slack and low >= -self.down - slack

    def towards(self, sign: float) -> float:
        """The margin for higher costs if the sign is positive, else that for lower costs."""
        return self.up if sign > 0 else self.down


def margin_of(claim: Claim, records: LawRecords, min_effect: float) -> Margin:
    """The minimum effect; for short calls the tracer's exactness; for a hand-written law half of its stated scatter.

    A person who writes ``Norm(500, 5000)`` says that a call of 0.5 and one of 4,000 are both as expected. The runs
    behind a learnt law show how exactly its mean is known, so that its scatter does not widen the margin.
    """
    inside = records.inside
    mean = max(float(np.average(records.expected[inside], weights=records.weight[inside])), 1e-9)
    least = max(min_effect, 1.0 + MIN_TIME / mean) if claim.metric.unit == "ns" else min_effect
    if claim.baseline is not None:
        return Margin(log(least), log(least))
    wide = STATED_PART * float(np.average(stated_scatter(claim, records), weights=records.weight[inside])) / mean
    down = max(log(least), -log(1.0 - wide)) if wide < 1.0 else inf
    return Margin(max(log(least), log(1.0 + wide)), down, stated=1.0 + wide > least)


def stated_scatter(claim: Claim, records: LawRecords) -> Array:
    """Standard deviation that the law states at each record inside it, unit of the metric; 0 without a finite one."""
    records = records.take(records.inside)
    scatter = np.zeros(records.cost.size)
    for number, one in enumerate(claim.clauses):
        rows = np.flatnonzero(records.clause == number)
        if rows.size:
            stated = distributions.scatter(one, records.values_of(rows))
            scatter[rows] = np.nan_to_num(stated, posinf=0.0) * claim.factor
    return scatter


def scatter_note(claim: Claim, records: LawRecords) -> str:
    """A sentence about scatter that is far from what a hand-written law states; empty otherwise."""
    if claim.baseline is not None or any(len(one.parts) > 1 for one in claim.clauses):
        return ""
    stated = stated_scatter(claim, records)
    records = records.take(records.inside)
    if stated.size < 2 or (stated <= 0).any():
        return ""
    # Medians, because a few slow calls are no scatter.
    level = np.median(records.cost / records.expected)
    factor = float(np.median(np.abs(records.cost - level * records.expected) / stated)) / 0.6745
    if 1.0 / SCATTER_FACTOR <= factor <= SCATTER_FACTOR:
        return ""
    if factor < 0.001:
        return "calls scatter far less than the law states"
    return f"calls scatter {factor:.2g}x as far as the law states"
