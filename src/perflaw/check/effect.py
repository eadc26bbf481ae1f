"""How far the cost of runs is from a law: per run the log of observed over expected cost, seen in several ways.

Two statistics. ``total``: the runs' whole cost over the expected one, which is what a person pays. ``typical``: the
factor by which costs must be divided for the records to look like the law, that is for their probabilities under it
(probability integral transform) to have mean one half; a few slow calls do not move it. Each is taken over all records,
over each scope, and (totals) over the larger inputs, since many laws break from some size on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from perflaw.check.claims import Baseline, Claim
from perflaw.check.evalues import Effects
from perflaw.check.records import Array, Records, probability
from perflaw.laws import distributions

SHARES = (0.5, 0.875)
"""Records are split by size at these quantiles of a feature."""
MOST_FEATURES, MOST_SCOPES = 3, 6
"""So many features and scopes are looked at apart."""
SAMPLE = 200
"""Records of a run that its typical effect is computed from."""
FEWEST, FEWEST_APART = 3, 5
"""Records that the view of everything needs, and one of a part."""
STEPS = 16
"""Halvings of the interval in which the typical effect lies: to a hundredth of a percent."""


@dataclass(frozen=True, slots=True)
class View:
    """A way to look at a component's runs."""

    name: str
    """``total``, ``typical n >= 500``: its key in the twin."""
    since: str
    """From which size on; empty for all."""
    clause: int
    """Scope it looks at, −1 for all."""
    runs: NDArray[np.str_]
    """(R,) runs it sees."""
    effects: Effects
    """Their effects."""
    records: int
    """Records it sees."""


def cuts_of(claim: Claim, records: Records) -> dict[str, tuple[float, ...]]:
    """Values of the law's numeric features at which inputs count as large."""
    found: dict[str, tuple[float, ...]] = {}
    for name in sorted(claim.names)[:MOST_FEATURES]:
        column = records.values[name]
        if column.dtype.kind == "U" or not records.inside.any():
            continue
        values = np.asarray(column[records.inside], dtype=np.float64)
        cuts = np.quantile(values, SHARES, method="inverted_cdf")
        cuts = np.unique(cuts[(cuts > values.min())])
        if cuts.size:
            found[name] = tuple(float(cut) for cut in cuts)
    return found


def baseline_of(claim: Claim, records: Records) -> Baseline:
    """What the runs a law was learnt from say of it."""
    cuts = cuts_of(claim, records)
    inside = records.take(records.inside)
    effects = {view.name: view.effects for view in views(claim, records, cuts)}
    return Baseline(cuts, effects, scatter_of(inside) if inside.cost.size else 0.0)


def views(
    claim: Claim, records: Records, cuts: Mapping[str, tuple[float, ...]], scatter: float = 0.0
) -> Iterator[View]:
    """Every view of the records inside the law's scope that has enough of them.

    ``scatter`` is the least mean squared relative deviation of an invocation: that of the runs of the law.
    """
    records = records.take(records.inside)
    for key, since, clause, keep in _parts(claim, records, cuts):
        some = records.take(keep)
        if some.cost.size < (FEWEST_APART if key else FEWEST):
            continue
        names, run = np.unique(some.run, return_inverse=True)
        total = totals(some, run, names.size, scatter)
        yield View(f"total{key}", since, clause, names, total, some.cost.size)
        if not since and np.mean(some.cost > 0) > 0.9:
            typical = _typical(claim, some, run, names.size)
            yield View(f"typical{key}", since, clause, names, typical, some.cost.size)


def _parts(
    claim: Claim, records: Records, cuts: Mapping[str, tuple[float, ...]]
) -> Iterator[tuple[str, str, int, NDArray[np.bool_]]]:
    """Key, size from which on, scope and records of each part."""
    yield "", "", -1, np.ones(records.cost.size, dtype=bool)
    if len(claim.clauses) > 1:
        for number in range(min(len(claim.clauses), MOST_SCOPES)):
            yield f" [{number}]", "", number, records.clause == number
    for name, values in cuts.items():
        column = np.asarray(records.values[name], dtype=np.float64)
        for value in values:
            text = f"{name} = {value:.6g}"
            yield f" {name} >= {value:.6g}", text, -1, column >= value * (1 - 1e-9)


def totals(records: Records, run: NDArray[np.intp], runs: int, scatter: float = 0.0) -> Effects:
    """Log of each run's cost over what the law expects of it; a unit of cost on both sides makes zeros finite."""
    w, y, m = records.weight, records.cost, records.expected
    observed, expected = np.bincount(run, w * y, runs), np.bincount(run, w * m, runs)
    unit = np.bincount(run, w, runs)
    ratio = (observed + unit) / (expected + unit)
    count = np.bincount(run, minlength=runs)
    own = np.bincount(run, (w * (y - ratio[run] * m)) ** 2, runs) * count / np.maximum(count - 1, 1)
    # A run of few records does not know its own scatter: that of all runs stands in, or that of the law's own runs.
    pooled = max(scatter, scatter_of(records)) * np.bincount(run, (w * (ratio[run] * m + 1.0)) ** 2, runs)
    return Effects(np.log(ratio), np.maximum(own, pooled) / (observed + unit) ** 2)


def scatter_of(records: Records) -> float:
    """Mean squared deviation of invocations from what the law expects of them, relative to that, their level apart."""
    w, y, m = records.weight, records.cost, records.expected
    ratio = ((w * y).sum() + w.sum()) / ((w * m).sum() + w.sum())
    return float((w * (y - ratio * m) ** 2).sum() / (w * (ratio * m + 1.0) ** 2).sum())


def _typical(claim: Claim, records: Records, run: NDArray[np.intp], runs: int) -> Effects:
    """Log of the factor that brings the mean probability of each run's records to one half, and its variance."""
    keep = np.concatenate([sample(records.weight, np.flatnonzero(run == number)) for number in range(runs)])
    some, run = records.take(keep), run[keep]
    error = 0.5 / np.sqrt(3.0 * np.bincount(run, minlength=runs))
    # More probability is left below a cost that is divided by less.
    low, high = _factors(claim, some, run, np.clip(0.5 + np.outer((1.0, -1.0), error), 0.02, 0.98))
    return Effects((low + high) / 2.0, ((high - low) / 2.0) ** 2)


def sample(weight: Array, rows: NDArray[np.intp], most: int = SAMPLE) -> NDArray[np.intp]:
    """At most ``most`` of the rows, each invocation equally likely: systematic sampling by cumulated weight."""
    total = np.cumsum(weight[rows])
    count = min(most, max(rows.size, 1))
    marks = (np.arange(count) + 0.5) / count * total[-1]
    return np.asarray(rows[np.minimum(np.searchsorted(total, marks), rows.size - 1)])


def _factors(claim: Claim, records: Records, run: NDArray[np.intp], targets: Array) -> Array:
    """Logs of the factors at which each run's mean probability is as ``targets`` (T, R) say, by halving; (T, R).

    ``run`` is the number of each record's run, increasing.
    """
    starts, count = np.flatnonzero(np.r_[True, np.diff(run) > 0]), np.bincount(run)
    log = np.log(np.maximum(records.cost, 1e-9) / np.maximum(records.expected, 1e-9))
    low = np.maximum(np.minimum.reduceat(log, starts) - 1.0, -20.0) + np.zeros(targets.shape)
    high = np.minimum(np.maximum.reduceat(log, starts) + 1.0, 20.0) + np.zeros(targets.shape)
    below = probability(claim, records)
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        share = np.nan_to_num(below(records.cost * np.exp(-middle)[:, run]), nan=0.5)
        above = np.add.reduceat(share, starts, axis=1) / count > targets
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2.0)


# ---- Which changes matter: beyond the minimum effect, the exactness of the measurement, and the scatter a stated law
# allows.

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
