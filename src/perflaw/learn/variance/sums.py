"""Exact raw sums: integers in, moments out. Variance is formed as (N·ΣX² − (ΣX)²)/N², in integers, and divided last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple


class Link(NamedTuple):
    """Sums over an ancestor's invocations of a descendant's calls K and cost Y; X is the ancestor's cost."""

    n: int
    """Invocations of the ancestor in which it took part."""
    once: int
    """Those with K = 1."""
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


NO_LINK = Link(0, 0, 0, 0, 0, 0, 0, 0)


def pooled(links: Iterable[Link]) -> Link:
    """Sums over invocations of different ancestors."""
    rows = list(links)
    return rows[0] if len(rows) == 1 else Link(*map(sum, zip(NO_LINK, *rows, strict=True)))


@dataclass(frozen=True, slots=True)
class Stats:
    """Raw moments of a cost over N invocations; they add where invocations are put together (§6.1, exactly)."""

    n: int
    """N."""
    x: int
    """ΣX."""
    xx: int
    """ΣX²."""

    def __add__(self, other: Stats) -> Stats:
        """All invocations of both."""
        return Stats(self.n + other.n, self.x + other.x, self.xx + other.xx)

    @property
    def spread(self) -> int:
        """N²·Var(X) = N·ΣX² − (ΣX)², exact."""
        return self.n * self.xx - self.x * self.x

    @property
    def mean(self) -> float:
        """ΣX/N."""
        return self.x / self.n if self.n else 0.0

    @property
    def variance(self) -> float:
        """Population variance.

        >>> Stats(2, 2 * 10**9 + 2000, 10**18 + (10**9 + 2000) ** 2).variance
        1000000.0
        """
        return self.spread / (self.n * self.n) if self.n else 0.0

    @property
    def sigma(self) -> float:
        """Its root."""
        return sqrt(max(self.variance, 0.0))

    @property
    def cov(self) -> float:
        """σ over the mean; 0 where nothing is spent."""
        return self.sigma / self.mean if self.x > 0 else 0.0

    def is_high(self, threshold: float, noise: float = 0.0) -> bool:
        """Whether CoV ≥ threshold (§2.1), and σ more than the noise of the clock."""
        least = max(threshold * self.x, noise * self.n)
        return self.x > 0 and self.spread >= least * least


# ---- The recorder's log histograms: four buckets to a power of two.


def log_bucket(x: int) -> int:
    """Bucket of the recorder's log histograms: four to a power of two.

    >>> [log_bucket(x) for x in (0, 1, 2, 4, 5, 8, 1000)]
    [0, 4, 8, 12, 13, 16, 43]
    """
    bits = x.bit_length()
    return bits * 4 + ((x >> (bits - 3)) & 3 if bits >= 3 else 0)


def middle(bucket: int) -> float:
    """The middle of a bucket.

    >>> [middle(b) for b in (0, 4, 8, 12, 43)]
    [0.0, 1.0, 2.5, 4.0, 959.5]
    """
    bits, quarter = divmod(bucket, 4)
    if bits < 3:
        return (0.0, 1.0, 2.5)[bits]
    low = (4 + quarter) << (bits - 3)
    return low + ((1 << (bits - 3)) - 1) / 2
