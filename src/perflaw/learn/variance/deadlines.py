"""Soft real-time figures (§8.1): how often a deadline is missed, by Chebyshev's inequality and as recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from perflaw.confidence import HIGH, LOW, normal_quantile
from perflaw.learn.variance.sampled import sampled
from perflaw.learn.variance.sums import Stats, log_bucket, middle
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.weighted import Floats
from perflaw.types.recordings import TIME
from perflaw.types.variance import Bound, Deadline

Z: Final = normal_quantile()


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The recorded distribution: counts of the histogram, spread over the samples of each of its buckets."""

    values: Floats
    """(m,) sorted costs."""
    weight: Floats
    """(m,) invocations each stands for."""
    of_bucket: Floats
    """(m,) samples in its bucket."""
    bucket: Floats
    """(m,) number of its bucket."""


def observed(tree: Tree, heads: Sequence[int]) -> Observed | None:
    """The distribution of the cost of these nodes; None where nothing was kept of it."""
    some = sampled(tree, heads)
    if some is None:
        return None
    buckets = np.array([log_bucket(int(x)) for x in some.x.tolist()], dtype=np.float64)
    counts = _counts(tree, heads) if tree.given.metric.name == TIME.name else None
    if counts is None:
        ones = np.ones(len(some))
        return Observed(some.x, some.weight, ones, buckets)
    found, inverse, held = np.unique(buckets, return_inverse=True, return_counts=True)
    weight = np.array([counts.pop(int(one), 0) for one in found.tolist()], dtype=np.float64) / held
    missed = np.array(sorted(counts), dtype=np.float64)  # buckets without a sample: their middle stands for them
    middles = np.array([middle(int(one)) for one in missed.tolist()])
    values = np.concatenate([some.x, middles])
    order = np.argsort(values, kind="stable")
    weights = np.concatenate([weight[inverse], [counts[int(one)] for one in missed.tolist()]])
    samples = np.concatenate([held[inverse].astype(np.float64), np.zeros(len(missed))])
    return Observed(values[order], weights[order], samples[order], np.concatenate([buckets, missed])[order])


def _counts(tree: Tree, heads: Sequence[int]) -> dict[int, int] | None:
    if tree.given.histogram is None:
        return None
    node, bucket, count = tree.given.histogram
    mine = np.isin(node, np.asarray(heads, dtype=np.int64))
    counts: dict[int, int] = {}
    for one, times in zip(bucket[mine].tolist(), count[mine].tolist(), strict=True):
        counts[one] = counts.get(one, 0) + times
    return counts or None


def miss(deadline: float, stats: Stats, seen: Observed) -> Deadline:
    """P(cost > deadline), with its interval by Clopper and Pearson."""
    t = (deadline - stats.mean) / stats.sigma if stats.sigma else np.inf * (deadline - stats.mean)
    chebyshev = min(1.0, 1 / (t * t)) if t > 0 else 1.0
    above = seen.values > deadline
    total = float(seen.weight.sum())
    share = float(seen.weight[above].sum()) / total
    least, most = _bucket_bounds(deadline, seen, above)
    return Deadline(deadline, chebyshev, share, _beta(least, total)[0], _beta(most, total)[1])


def _bucket_bounds(
    deadline: float, seen: Observed, above: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[float, float]:
    """Least and most invocations above the deadline: its own bucket was sampled, the rest counted."""
    mine = seen.bucket == log_bucket(max(int(deadline), 0))
    counted = float(seen.weight[above & ~mine].sum())
    held, times = int(mine.sum()), float(seen.weight[mine].sum())
    if not held or times <= held:
        sure = counted + float(seen.weight[above & mine].sum())
        return sure, sure
    low, high = _beta(float((above & mine).sum()), float(held))
    return counted + low * times, counted + high * times


def _beta(hits: float, of: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, of - hits + 1, LOW)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, of - hits, HIGH)) if hits < of else 1.0
    return low, high


def bound(probability: float, stats: Stats, seen: Observed) -> Bound:
    """The deadline that is exceeded with this probability; its interval is that of order statistics."""
    chebyshev = stats.mean + stats.sigma / sqrt(probability)
    total = float(seen.weight.sum())
    half = Z * sqrt(total * probability * (1 - probability))
    rank = total * (1 - probability)
    at, low, high = (_at(seen, one) for one in (rank, rank - half, rank + half + 1))
    return Bound(probability, chebyshev, at if total * probability >= 1 else None, low, high)


def _at(seen: Observed, rank: float) -> float | None:
    """The cost of the invocation of that rank, None beyond the last."""
    sums = np.cumsum(seen.weight)
    if rank > sums[-1] + 1e-6:
        return None
    return float(seen.values[min(int(np.searchsorted(sums, max(rank, 0.0) - 1e-6)), len(sums) - 1)])
