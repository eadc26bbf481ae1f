"""Statistics of costs: exact moments and sums, the recorder's log histograms, quantiles of weighted samples.

Sums are exact integers. A variance is formed in integers as (N·ΣX² − (ΣX)²)/N² and divided last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perflaw.types.call_trees import BUCKETS_PER_POWER, CallTree
from perflaw.types.variance import Split

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stats:
    """Raw moments of a cost X over N invocations; moments of disjoint sets of invocations add up (§6.1, exactly)."""

    n: int
    """N."""
    x: int
    """ΣX."""
    xx: int
    """ΣX²."""

    def __add__(self, other: Stats) -> Stats:
        """Moments over the invocations of both."""
        return Stats(self.n + other.n, self.x + other.x, self.xx + other.xx)

    @property
    def spread(self) -> int:
        """N²·Var(X) = N·ΣX² − (ΣX)², exact."""
        return self.n * self.xx - self.x * self.x

    @property
    def mean(self) -> float:
        """ΣX/N; 0 without invocations."""
        return self.x / self.n if self.n else 0.0

    @property
    def variance(self) -> float:
        """Population variance; 0 without invocations.

        >>> Stats(2, 2 * 10**9 + 2000, 10**18 + (10**9 + 2000) ** 2).variance
        1000000.0
        """
        return self.spread / (self.n * self.n) if self.n else 0.0

    @property
    def sigma(self) -> float:
        """Standard deviation."""
        return sqrt(max(self.variance, 0.0))

    @property
    def cov(self) -> float:
        """Coefficient of variation σ/mean; 0 if the cost is 0."""
        return self.sigma / self.mean if self.x > 0 else 0.0

    def is_high(self, threshold: float, noise: float = 0.0) -> bool:
        """Whether CoV ≥ threshold (§2.1) and σ is at least the noise of the clock."""
        least = max(threshold * self.x, noise * self.n)
        return self.x > 0 and self.spread >= least * least


class Link(NamedTuple):
    """Sums over an ancestor's invocations of a descendant's calls K and cost Y; X is the ancestor's cost."""

    n: int
    """Invocations of the ancestor in which the descendant was called."""
    once: int
    """Invocations of the ancestor with K = 1."""
    k: int
    """ΣK."""
    kk: int
    """ΣK²."""
    ky: int
    """ΣKY."""
    y: int
    """ΣY."""
    yy: int
    """ΣY²."""
    yx: int
    """ΣYX."""

    def net(self, total: Stats) -> int:
        """N²·Cov(Y, X), exact; ``total`` are the moments of X."""
        return total.n * self.yx - self.y * total.x

    def spread(self, n: int) -> int:
        """n²·Var(Y) = n·ΣY² − (ΣY)² over ``n`` invocations, exact."""
        return n * self.yy - self.y * self.y


def pooled(links: Iterable[Link]) -> Link:
    """Sums over the invocations of several ancestors; all sums are 0 without links."""
    rows = list(links)
    return rows[0] if len(rows) == 1 else Link(*map(sum, zip(Link(0, 0, 0, 0, 0, 0, 0, 0), *rows, strict=True)))


def split(sums: Link, n: int) -> Split:
    """Var(Y) of a part over ``n`` invocations, split by its causes; the three terms add up to it.

    p(1 − p)·E[Y | called]² lies between invocations that make the call and those that do not. Within those that do, the
    trip count explains Cov(K, Y)²/Var(K), the most that a straight line in K can; the rest is the cost per call.

    >>> split(Link(n=4, once=0, k=12, kk=40, ky=200, y=60, yy=1000, yx=0), 4)  # Y = 5K, K in {2, 4}
    Split(called=0.0, trips=25.0, cost=0.0)
    """
    called = sums.n
    if not called or not n:
        return Split(0.0, 0.0, 0.0)
    between = (n - called) * sums.y * sums.y / (called * n * n)
    trips = called * sums.kk - sums.k * sums.k  # called²·Var(K | called)
    both = called * sums.ky - sums.k * sums.y  # called²·Cov(K, Y | called)
    by_trips = both * both / (trips * called * n) if trips else 0.0
    within = sums.spread(called) / (called * n)
    return Split(between, min(by_trips, within), max(within - by_trips, 0.0))


def bucket_middle(bucket: int) -> float:
    """Middle of the values in a bucket.

    >>> [bucket_middle(b) for b in (0, 4, 8, 12, 43)]
    [0.0, 1.0, 2.5, 4.0, 959.5]
    """
    bits, quarter = divmod(bucket, BUCKETS_PER_POWER)
    if bits < 3:
        return (0.0, 1.0, 2.5)[bits]
    low = (4 + quarter) << (bits - 3)
    return low + ((1 << (bits - 3)) - 1) / 2


def quantile(x: Floats, weight: Floats, p: float) -> float:
    """Smallest value of the sorted ``x`` (n,) that has at least the fraction ``p`` of all weight (n,) up to it.

    >>> quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    return float(x[quantile_place(np.cumsum(weight), p)])


def quantile_place(up_to: Floats, p: float) -> NDArray[np.intp]:
    """Place (...) of the first of some sorted values that has the fraction ``p`` of all weight up to it.

    ``up_to`` (..., n) is the weight up to each value, its own included.
    """
    reached = up_to >= p * up_to[..., -1:] * (1 - 1e-12)
    return np.asarray(reached.argmax(axis=-1))


def quantiles_of_groups(x: Floats, weight: Floats, first: NDArray[np.intp], p: float) -> Floats:
    """The quantile ``p`` of each group (g,), as by :func:`quantile`; within groups ``x`` (n,) is sorted.

    ``first`` (g,) are the places at which groups begin, one after the other; none is empty.

    >>> quantiles_of_groups(np.array([1.0, 2.0, 3.0, 7.0]), np.array([1.0, 1.0, 2.0, 1.0]), np.array([0, 3]), 0.5)
    array([2., 7.])
    """
    length = np.diff(first, append=len(x))
    result = np.empty(len(first))
    # Groups of similar length are the rows of a matrix, padded by no weight: their sums are added in the same order.
    classes = np.frexp(length)[1]
    for one in np.unique(classes):
        rows = np.flatnonzero(classes == one)
        column = np.arange(length[rows].max())
        inside = column < length[rows, None]
        up_to = np.cumsum(np.where(inside, weight[np.where(inside, first[rows, None] + column, 0)], 0.0), axis=1)
        result[rows] = x[first[rows] + quantile_place(up_to, p)]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class ContextWeights:
    """Weights of the sampled invocations by calling context, and the invocations that no sample stands for.

    Invocations are sampled by function and stratum, so a sample's own weight stands for invocations of all contexts of
    its function. The histogram of a context counts the invocations of that context exactly: weights that add up to its
    counts have much smaller errors (post-stratification; Cochran, "Sampling Techniques", 5A.9), and invocations of a
    stratum without a sample become known.
    """

    weight: Floats
    """(S,) invocations of its own context that each sampled invocation stands for."""
    node: NDArray[np.int64]
    """(U,) contexts of invocations whose stratum has no sample in that context."""
    value: Floats
    """(U,) their wall time, accurate to an eighth."""
    count: Floats
    """(U,) how many they are."""
    complete: bool
    """Whether a histogram was kept, so that every invocation is counted."""


def context_weights(tree: CallTree) -> ContextWeights:
    """Weights by context; the samples' own weights if no histogram was kept. The tree must have samples."""
    assert tree.samples is not None
    samples, nothing = tree.samples, np.zeros(0)
    if tree.histogram is None:
        return ContextWeights(samples.weight, nothing.astype(np.int64), nothing, nothing, complete=False)
    node, bucket, count = tree.histogram
    stratum = bucket // BUCKETS_PER_POWER
    strata = int(max(stratum.max(initial=0), samples.stratum.max(initial=0))) + 1
    sample_cells, histogram_cells = samples.node * strata + samples.stratum, node * strata + stratum
    cells, inverse = np.unique(np.concatenate([sample_cells, histogram_cells]), return_inverse=True)
    of_sample, of_bucket = inverse[: len(sample_cells)], inverse[len(sample_cells) :]
    invocations = np.bincount(of_bucket, count, len(cells))
    sampled = np.bincount(of_sample, minlength=len(cells))
    unsampled = sampled[of_bucket] == 0
    values = np.array([bucket_middle(each) for each in bucket[unsampled].tolist()])
    weight = np.where(invocations[of_sample] > 0, invocations[of_sample] / sampled[of_sample], samples.weight)
    return ContextWeights(weight, node[unsampled], values, count[unsampled].astype(np.float64), complete=True)
