"""Exponential histograms of durations: made, merged, made coarser, and asked for shares and quantiles.

Bucket i of scale s holds what is above b^i and at most b^(i+1), b = 2^(2^-s) (OpenTelemetry metrics data model,
"ExponentialHistogram"). Making a histogram coarser halves the places of its buckets, so it merges with any other; nothing
depends on the order of merging. Inside a bucket mass lies evenly on the logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.errors import DataError
from perflaw.types import Histogram
from perflaw.types.specifications import MOST_BUCKETS, MOST_SCALE

Array = NDArray[np.float64]

MOST_HALVINGS = 62
"""How often places of buckets are halved at most: nothing else is left of them then."""
SMALLEST = 5e-324
"""The smallest number above 0."""
EXPONENTS = (-300.0, 300.0)
"""Binary logarithms of durations lie between these; damaged places of buckets beyond do no harm."""


def histogram_of(values: ArrayLike, scale: int = MOST_SCALE, most: int = MOST_BUCKETS) -> Histogram:
    """Durations (n,) in at most ``most`` buckets, of that scale or as much coarser as their range asks for.

    What is not above 0 took no time by the clock. DataError for what is no finite number.

    >>> histogram_of([0, 1, 2, 3, 4, 4, 1000], scale=0)
    Histogram(scale=0, offset=-1, counts=array([1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 1]), zeros=1)
    """
    y = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(y).all():
        raise DataError("a duration is no finite number", "a clock or a file is damaged", "perflaw doctor")
    above = y[y > 0]
    if above.size == 0:
        return Histogram(scale, 0, np.zeros(0, np.int64), int(y.size))
    places = np.ceil(np.ldexp(np.log2(above), scale)).astype(np.int64) - 1
    shift = _shift(int(places.min()), int(places.max()), most)
    places >>= shift
    offset = int(places.min())
    return Histogram(scale - shift, offset, np.bincount(places - offset), int(y.size - above.size))


def merged(histograms: Sequence[Histogram], most: int = MOST_BUCKETS) -> Histogram:
    """All of them in one, of the coarsest of their scales or coarser; without any, an empty one.

    >>> merged([histogram_of([1, 2], scale=1), histogram_of([4], scale=0)])
    Histogram(scale=0, offset=-1, counts=array([1, 1, 1]), zeros=0)
    """
    scale = min((h.scale for h in histograms), default=MOST_SCALE)
    zeros = sum(h.zeros for h in histograms)
    same = [downscaled(h, scale) for h in histograms if h.counts.size]
    if not same:
        return Histogram(scale, 0, np.zeros(0, np.int64), zeros)
    low, high = min(h.offset for h in same), max(h.offset + h.counts.size - 1 for h in same)
    shift = _shift(low, high, most)
    low, high = low >> shift, high >> shift
    counts = np.zeros(high - low + 1, np.int64)
    for h in same:
        np.add.at(counts, ((h.offset + np.arange(h.counts.size)) >> shift) - low, h.counts)
    return Histogram(scale - shift, low, counts, zeros)


def downscaled(h: Histogram, scale: int) -> Histogram:
    """The same calls in coarser buckets, 2^(2^-scale) wide; DataError where ``scale`` is finer than what is known.

    >>> downscaled(Histogram(1, 1, np.array([4, 2, 1])), 0)
    Histogram(scale=0, offset=0, counts=array([4, 3]), zeros=0)
    """
    shift = h.scale - scale
    if shift < 0:
        raise DataError(f"a histogram of scale {h.scale} cannot be made finer ({scale})")
    if shift == 0 or h.counts.size == 0:
        return Histogram(scale, h.offset if h.counts.size else 0, h.counts, h.zeros)
    places = (h.offset + np.arange(h.counts.size)) >> min(shift, MOST_HALVINGS)
    counts = np.zeros(int(places[-1] - places[0]) + 1, np.int64)
    np.add.at(counts, places - places[0], h.counts)
    return Histogram(scale, int(places[0]), counts, h.zeros)


def edges(h: Histogram) -> Array:
    """Bounds of the buckets, (B + 1,), increasing; (1,) of 0 where there is none. Beyond ``EXPONENTS`` they stand still.

    >>> edges(histogram_of([1, 2, 4], scale=0))
    array([0.5, 1. , 2. , 4. ])
    """
    if h.counts.size == 0:
        return np.zeros(1)
    return np.asarray(np.exp2(_exponents(h)))


def total(h: Histogram) -> int:
    """Calls in it.

    >>> total(histogram_of([0, 1, 2]))
    3
    """
    return int(h.counts.sum()) + h.zeros


def cdf(h: Histogram, x: ArrayLike) -> Array:
    """Share of the calls that took at most x (k,) -> (k,); 0 where there are no calls.

    >>> cdf(histogram_of([1, 4, 4, 4], scale=0), [0.5, 1, 2, 2 * 2**0.5, 5]).tolist()
    [0.0, 0.25, 0.25, 0.625, 1.0]
    """
    places = np.asarray(x, dtype=np.float64)
    n = total(h)
    if n == 0:
        return np.zeros(places.shape)
    if h.counts.size == 0:
        return np.where(places >= 0, 1.0, 0.0)
    below = np.r_[0, np.cumsum(h.counts)]
    at = np.interp(_log2(places), _exponents(h), below)
    return np.asarray(np.where(places >= 0, (at + h.zeros) / n, 0.0))


def quantile(h: Histogram, q: ArrayLike) -> Array:
    """Durations that shares q (k,) of the calls do not exceed, (k,); NaN where there are no calls.

    >>> quantile(histogram_of([1, 4, 4, 4], scale=0), [0, 0.25, 0.625, 1]).round(3).tolist()
    [0.5, 1.0, 2.828, 4.0]
    """
    share, n = np.asarray(q, dtype=np.float64), total(h)
    if n == 0:
        return np.full(share.shape, np.nan)
    if h.counts.size == 0:
        return np.zeros(share.shape)
    held = np.flatnonzero(h.counts)
    below = np.cumsum(h.counts)[held]
    # Empty buckets hold no quantile: the left end of a held bucket stands just above the mass before it.
    exponents = _exponents(h)
    knots = np.stack([below - h.counts[held], below], axis=1).ravel()
    ends = np.stack([exponents[held], exponents[held + 1]], axis=1).ravel()
    wanted = share * n - h.zeros
    return np.asarray(np.where((wanted <= 0) & (h.zeros > 0), 0.0, np.exp2(_at(wanted, knots, ends))))


def clusters(h: Histogram, borders: ArrayLike) -> Array:
    """Calls in each cluster, (C,) for C − 1 increasing borders; a bucket that a border cuts is divided on the logarithm.

    >>> clusters(histogram_of([0, 1, 4, 4], scale=0), [2.0])
    array([2., 2.])
    """
    below = cdf(h, np.asarray(borders, dtype=np.float64).ravel()) * total(h)
    return np.diff(np.r_[0.0, below, total(h)])


def _shift(low: int, high: int, most: int) -> int:
    """How often places are halved until at most ``most`` buckets reach from the one to the other."""
    shift = 0
    while (high >> shift) - (low >> shift) >= most and shift < MOST_HALVINGS:
        shift += 1
    return shift


def _exponents(h: Histogram) -> Array:
    """Binary logarithms of the bounds, (B + 1,)."""
    places = h.offset + np.arange(h.counts.size + 1, dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(places, -h.scale), *EXPONENTS)


def _log2(places: Array) -> Array:
    """Binary logarithms; of what is not above 0, below all there are."""
    return np.log2(np.where(places > 0, places, SMALLEST))


def _at(wanted: Array, knots: Array, ends: Array) -> Array:
    """Linear between knots that may repeat: at a repeated one the left end, (k,)."""
    right = np.clip(np.searchsorted(knots, wanted, side="left"), 1, knots.size - 1)
    width = knots[right] - knots[right - 1]
    part = np.clip((wanted - knots[right - 1]) / np.where(width > 0, width, 1), 0.0, 1.0)
    return np.asarray(ends[right - 1] + part * (ends[right] - ends[right - 1]))
