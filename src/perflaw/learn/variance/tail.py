"""The tail of a function's cost: the budget of slow invocations, and how often deadlines are missed (§8.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.confidence import HIGH, LOW, normal_quantile
from perflaw.learn.variance.moments import Floats, Stats, bucket_middle, quantile, quantile_place
from perflaw.learn.variance.parts import (
    OWN,
    REST,
    Key,
    Parts,
    SampledInvocations,
    bootstrap_interval,
    parts_matrix,
    resampled_weights,
    sampled_invocations,
)
from perflaw.learn.variance.tree import Tree
from perflaw.special import betaincinv
from perflaw.types.call_trees import OTHER, log_bucket
from perflaw.types.recordings import CPU, TIME, Component
from perflaw.types.variance import Bound, Budget, BudgetRow, Deadline, Source

# ---- The budget: what each part adds to an invocation at the 99th percentile, against one near the median.

TAIL_QUANTILE: Final = 0.99
"""Quantile of the cost from which on an invocation is slow."""
MEDIAN_RANGE: Final = (0.45, 0.55)
"""Quantiles of the cost between which an invocation is near the median."""
PARTS_OF_TIME: Final = ("gc", "lock_wait")
"""Further metrics in ns that are parts of the time."""
MIN_REST: Final = 0.02
"""Fraction of a row, apart from its deeper paths, below which it is added to those."""


def budget(tree: Tree, parts: Parts, sampled: SampledInvocations | None, sources: Sequence[Source]) -> Budget | None:
    """The budget; None without samples, or if slow invocations cost no more than others.

    ``sources`` underlie the variance; rows of direct callees are split by those below.
    """
    if sampled is None or parts.total.spread <= 0:
        return None
    weight = sampled.weight[None]
    groups = _tail_and_middle(sampled.x, weight)
    tail, median = (float(_means(group, weight, sampled.x[:, None])[0, 0]) for group in groups)
    if not tail > median:
        return None
    if sampled.has_callee_costs:
        direct = _sampled_rows(tree, parts, sampled)
    else:
        direct = []  # by the regression line of Y_i on X: E[Y_i | X] = E[Y_i] + cf_net·(X − E[X])
        for key, sums, net in zip(parts.keys, parts.sums, parts.net, strict=True):
            share, mean = net / parts.total.spread, sums.y / parts.total.n
            low, high = (mean + share * (x - parts.total.mean) for x in (median, tail))
            direct.append(_row(tree, parts, key, (high, low, share, None, None, None), estimated=True))
    rows: list[BudgetRow] = []
    for row in direct:
        deeper = [source for source in sources if len(source.path) > 1 and source.path[:1] == row.path]
        rows += _split_by_source(row, deeper, parts, tail - median) if deeper and row.cf_net > 0 else [row]
    rows.sort(key=lambda row: -row.share)
    further = {}
    for name in PARTS_OF_TIME if tree.call_tree.metric.name in (TIME.name, CPU.name) else ():
        cost = sampled.samples.costs.get(name)
        if cost is not None:
            slow, middling = (float(_means(group, weight, cost[sampled.places, None])[0, 0]) for group in groups)
            further[name] = (slow - middling) / (tail - median)
    p99, p50 = (quantile(sampled.x, sampled.weight, p) for p in (TAIL_QUANTILE, 0.5))
    slow_samples = int(np.count_nonzero(sampled.weight[groups[0][0]]))
    return Budget(tail, median, p99, p50, slow_samples, tuple(rows), further)


def _tail_and_middle(x: Floats, weight: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each of the sorted costs (n,) is slow, and whether it is near the median, by weights (b, n): (b, n).

    Many invocations may cost exactly as much as the 99th percentile. They are slow with those beyond it where the group is
    then nearer to a hundredth of all; else those beyond it are slow alone.
    """
    up_to = np.cumsum(weight, axis=1)
    every = up_to[:, -1]
    tail, low, high = (x[quantile_place(up_to, p)] for p in (TAIL_QUANTILE, *MEDIAN_RANGE))
    below = np.concatenate([np.zeros((len(weight), 1)), up_to], axis=1)
    first, beyond = np.searchsorted(x, tail), np.searchsorted(x, tail, side="right")
    rows = np.arange(len(weight))
    with_ties, without = every - below[rows, first], every - below[rows, beyond]
    wanted = (1 - TAIL_QUANTILE) * every
    first = np.where(with_ties * without > wanted * wanted, beyond, first)
    return np.arange(len(x)) >= first[:, None], (low[:, None] <= x) & (x <= high[:, None])


def _means(group: NDArray[np.bool_], weight: Floats, values: Floats) -> Floats:
    """Weighted means of values (n, k) over groups (b, n) of invocations, (b, k); NaN without weight."""
    mine = np.where(group, weight, 0.0)
    total = mine.sum(axis=1)[:, None]
    return np.asarray(mine @ values / np.where(total > 0, total, np.nan))


def _sampled_rows(tree: Tree, parts: Parts, sampled: SampledInvocations) -> list[BudgetRow]:
    """Rows of the direct parts by the samples, with bootstrap intervals for which percentiles are drawn anew.

    They include a row for callees that are not kept apart, if the samples have any.
    """
    samples, rows = sampled.samples, sampled.callee_rows
    keys = (*parts.keys, REST) if (samples.callee[rows] == OTHER).any() else parts.keys
    matrix = parts_matrix(tree, sampled, keys, np.nan_to_num(samples.y[rows]), sampled.x)
    groups = _tail_and_middle(sampled.x, sampled.weight[None])
    tail, median = (_means(group, sampled.weight[None], matrix)[0] for group in groups)
    whole = float((tail - median).sum())
    blocks = []
    for weight in resampled_weights(sampled):
        slow, near = (_means(group, weight, matrix) for group in _tail_and_middle(sampled.x, weight))
        total = (slow - near).sum(axis=1, keepdims=True)
        blocks.append((slow - near) / np.where(total > 0, total, np.nan))
    drawn = np.concatenate(blocks)
    cpu = samples.cpu[sampled.places]
    waiting: Floats | None = None
    if tree.call_tree.metric.name == TIME.name and not np.isnan(cpu).any() and not np.isnan(samples.y_cpu[rows]).any():
        off_cpu_of_callees = np.nan_to_num(samples.y[rows] - samples.y_cpu[rows])
        off_cpu = parts_matrix(tree, sampled, keys, off_cpu_of_callees, sampled.x - cpu)
        slow, near = (_means(group, sampled.weight[None], off_cpu)[0] for group in groups)
        waiting = slow - near
    result = []
    for place, key in enumerate(keys):
        share = float(tail[place] - median[place]) / whole
        wait = None if waiting is None else float(waiting[place]) / whole
        interval = bootstrap_interval(drawn[:, place])
        result.append(_row(tree, parts, key, (float(tail[place]), float(median[place]), share, *interval, wait)))
    return result


_Figures = tuple[float, float, float, float | None, float | None, float | None]
"""tail, median, share, its interval, share off the CPU."""


def _row(tree: Tree, parts: Parts, key: Key, figures: _Figures, estimated: bool = False) -> BudgetRow:
    """The row of a direct callee or of own code."""
    if key == REST:
        return BudgetRow(Component("(other callees)", language=""), (), *figures, 0.0, "cost per call")
    place = parts.keys.index(key)
    share = parts.net[place] / parts.total.spread
    path = tree.steps(parts.nodes[place][:1])
    component = tree.call_tree.components[parts.function if key == OWN else key[1]]
    return BudgetRow(component, path, *figures, share, parts.mechanism(place), estimated)


def _split_by_source(row: BudgetRow, deeper: Sequence[Source], parts: Parts, whole: float) -> list[BudgetRow]:
    """A direct callee's row with the sources of variance below it in rows of their own; the sum stays.

    Samples hold direct callees alone; covariances know which paths below them matter. A deeper path has the part of its
    callee's row that it has of the callee's share of the variance. ``whole`` is what all rows explain.
    """
    ends = zip(parts.keys, parts.sums, strict=True)
    mean = next(sums.y / parts.total.n for key, sums in ends if key != OWN and key[0] == row.path[0].site)
    ratios = [source.cf_net / row.cf_net for source in deeper]
    left = 1 - sum(ratios)
    if abs(left) < MIN_REST:
        ratios = [ratio / (1 - left) for ratio in ratios]
        left = 0.0
    rows: list[BudgetRow] = []
    for source, ratio in zip(deeper, ratios, strict=True):
        median, share = source.mean * row.median / mean if mean else 0.0, row.share * ratio
        one = replace(_scaled(row, ratio), tail=median + share * whole, median=median, share=share, estimated=True)
        mechanism = source.split.mechanism
        rows.append(
            replace(one, component=source.component, path=source.path, cf_net=source.cf_net, mechanism=mechanism)
        )
    if left:
        tail, median = row.tail - sum(one.tail for one in rows), row.median - sum(one.median for one in rows)
        scaled = replace(_scaled(row, left), tail=tail, median=median, share=row.share * left)
        rows.append(replace(scaled, cf_net=row.cf_net * left, rest=True))
    return rows


def _scaled(row: BudgetRow, ratio: float) -> BudgetRow:
    """The row with its interval and its waiting multiplied by a ratio."""
    low, high, off_cpu = (
        None if value is None else value * ratio for value in (row.share_low, row.share_high, row.off_cpu)
    )
    if ratio < 0:
        low, high = high, low
    return replace(row, share_low=low, share_high=high, off_cpu=off_cpu)


# ---- Soft real-time figures: how often a deadline is missed, by Chebyshev's inequality and as recorded (§8.1).


@dataclass(frozen=True, slots=True, eq=False)
class CostDistribution:
    """The recorded distribution of a cost: counts of the histogram, spread over the samples in each of its buckets."""

    values: Floats
    """(m,) sorted costs."""
    weight: Floats
    """(m,) invocations that each stands for."""
    bucket: Floats
    """(m,) number of the bucket that each is in."""


def cost_distribution(tree: Tree, heads: Sequence[int]) -> CostDistribution | None:
    """The distribution of the cost of these nodes; None without samples.

    The middle of a bucket stands for its invocations if none of them is sampled.
    """
    sampled = sampled_invocations(tree, heads)
    if sampled is None:
        return None
    buckets = np.array([log_bucket(int(x)) for x in sampled.x.tolist()], dtype=np.float64)
    counts: dict[int, int] = {}
    if tree.call_tree.metric.name == TIME.name and tree.call_tree.histogram is not None:
        node, bucket, count = tree.call_tree.histogram
        mine = np.isin(node, np.asarray(heads, dtype=np.int64))
        for one, times in zip(bucket[mine].tolist(), count[mine].tolist(), strict=True):
            counts[one] = counts.get(one, 0) + times
    if not counts:
        return CostDistribution(sampled.x, sampled.weight, buckets)
    found, inverse, held = np.unique(buckets, return_inverse=True, return_counts=True)
    weight = np.array([counts.pop(int(one), 0) for one in found.tolist()], dtype=np.float64) / held
    unsampled = np.array(sorted(counts), dtype=np.float64)
    values = np.concatenate([sampled.x, np.array([bucket_middle(int(one)) for one in unsampled.tolist()])])
    weights = np.concatenate([weight[inverse], [counts[int(one)] for one in unsampled.tolist()]])
    order = np.argsort(values, kind="stable")
    return CostDistribution(values[order], weights[order], np.concatenate([buckets, unsampled])[order])


def missed_deadlines(
    asked: Sequence[tuple[Sequence[float], Stats, CostDistribution]],
) -> list[tuple[Deadline, ...]]:
    """P(cost > deadline) for the deadlines of each function asked for, with intervals by Clopper and Pearson.

    The limits of all are computed at once: of single functions they take several times as long.
    """
    if not asked:
        return []
    counts = [_above(np.asarray(deadlines, dtype=np.float64), costs) for deadlines, _, costs in asked]
    share, total, samples, hits, invocations, counted, exact = (
        np.concatenate(one) for one in zip(*counts, strict=True)
    )
    lower, upper = clopper_pearson(hits, hits, samples)
    whole = (samples == 0) | (invocations <= samples)
    least = counted + np.where(whole, exact, lower * invocations)
    most = counted + np.where(whole, exact, upper * invocations)
    limits = iter(zip(share.tolist(), *(one.tolist() for one in clopper_pearson(least, most, total)), strict=True))
    result = []
    for deadlines, stats, _ in asked:
        found = []
        for deadline in deadlines:
            t = (deadline - stats.mean) / stats.sigma if stats.sigma else np.inf * (deadline - stats.mean)
            found.append(Deadline(deadline, min(1.0, 1 / (t * t)) if t > 0 else 1.0, *next(limits)))
        result.append(tuple(found))
    return result


def _above(at: Floats, costs: CostDistribution) -> tuple[Floats, ...]:
    """What is known of the invocations that cost more than each deadline (d,), as arrays (d,).

    These are their share and the number of all. Invocations in the deadline's own bucket were sampled, the others counted: so
    the samples in that bucket, those above, the invocations in it; the invocations above outside of it, and inside.
    """
    above = costs.values > at[:, None]
    own = np.array([log_bucket(max(int(each), 0)) for each in at.tolist()], dtype=np.float64)
    mine = costs.bucket == own[:, None]
    inside, total = above & mine, float(costs.weight.sum())
    return (
        above @ costs.weight / total,
        np.full(at.size, total),
        mine.sum(axis=1),
        inside.sum(axis=1),
        mine @ costs.weight,
        (above & ~mine) @ costs.weight,
        inside @ costs.weight,
    )


def clopper_pearson(least: ArrayLike, most: ArrayLike, trials: ArrayLike) -> tuple[Floats, Floats]:
    """Limits (k,) of Clopper and Pearson's intervals of probabilities: the lower of ``least`` hits, the upper of ``most``."""
    least, most, trials = (np.asarray(one, dtype=np.float64) for one in (least, most, trials))
    low, high = np.zeros(least.size), np.ones(most.size)
    some, missing = np.flatnonzero(least > 0), np.flatnonzero(most < trials)
    # One call for both, because on few numbers it takes as long as on many.
    limits = betaincinv(
        np.concatenate([least[some], most[missing] + 1]),
        np.concatenate([trials[some] - least[some] + 1, trials[missing] - most[missing]]),
        np.concatenate([np.full(some.size, LOW), np.full(missing.size, HIGH)]),
    )
    low[some], high[missing] = limits[: some.size], limits[some.size :]
    return low, high


def exceeded_deadline(probability: float, stats: Stats, costs: CostDistribution) -> Bound:
    """The deadline that is exceeded with a probability; its interval is that of order statistics."""
    chebyshev = stats.mean + stats.sigma / sqrt(probability)
    weights = np.cumsum(costs.weight)

    def cost_at(rank: float) -> float | None:
        """Cost of the invocation of a rank, None beyond the last."""
        if rank > weights[-1] + 1e-6:
            return None
        return float(costs.values[min(int(np.searchsorted(weights, max(rank, 0.0) - 1e-6)), len(weights) - 1)])

    total = float(costs.weight.sum())
    half = normal_quantile() * sqrt(total * probability * (1 - probability))
    rank = total * (1 - probability)
    recorded, low, high = (cost_at(each) for each in (rank, rank - half, rank + half + 1))
    return Bound(probability, chebyshev, recorded if total * probability >= 1 else None, low, high)
