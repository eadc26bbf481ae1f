"""What a recorder keeps of durations: exponential histograms, and sums over batches of consecutive calls.

Bucket i of scale s holds durations above b^i and up to b^(i+1), with b = 2^(2^-s) (OpenTelemetry metrics data model,
"ExponentialHistogram"). Halving the places of its buckets makes a histogram coarser, so it can be merged with any other;
the order of merging does not matter. Within a bucket, mass is spread evenly on the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.errors import DataError
from perflaw.types import Batches, Histogram
from perflaw.types.specifications import LEVELS, MOST_BUCKETS, MOST_SCALE, UNIT

Array = NDArray[np.float64]

MAX_HALVINGS = 62
"""Number of times that places of buckets can be halved until nothing is left of them."""
MIN_POSITIVE = 5e-324
"""The smallest positive number."""
EXPONENTS = (-300.0, 300.0)
"""Range of the binary logarithms of durations; places of damaged buckets are cut to it."""


def histogram_of(values: ArrayLike, scale: int = MOST_SCALE, most: int = MOST_BUCKETS) -> Histogram:
    """Histogram of durations (n,) in at most ``most`` buckets, of that scale or as much coarser as their range needs.

    Durations of 0 or less took no time by the clock. DataError if a duration is not finite.

    >>> histogram_of([0, 1, 2, 3, 4, 4, 1000], scale=0)
    Histogram(scale=0, offset=-1, counts=array([1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 1]), zeros=1)
    """
    y = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(y).all():
        raise DataError("a duration is no finite number", "a clock or a file is damaged", "perflaw doctor")
    positive = y[y > 0]
    if positive.size == 0:
        return Histogram(scale, 0, np.zeros(0, np.int64), int(y.size))
    places = np.ceil(np.ldexp(np.log2(positive), scale)).astype(np.int64) - 1
    shift = _needed_halvings(int(places.min()), int(places.max()), most)
    places >>= shift
    offset = int(places.min())
    return Histogram(scale - shift, offset, np.bincount(places - offset), int(y.size - positive.size))


def merged(histograms: Sequence[Histogram], most: int = MOST_BUCKETS) -> Histogram:
    """One histogram of all calls, as coarse as the coarsest or coarser; an empty one without histograms.

    >>> merged([histogram_of([1, 2], scale=1), histogram_of([4], scale=0)])
    Histogram(scale=0, offset=-1, counts=array([1, 1, 1]), zeros=0)
    """
    scale = min((h.scale for h in histograms), default=MOST_SCALE)
    zeros = sum(h.zeros for h in histograms)
    same_scale = [downscaled(h, scale) for h in histograms if h.counts.size]
    if not same_scale:
        return Histogram(scale, 0, np.zeros(0, np.int64), zeros)
    low, high = min(h.offset for h in same_scale), max(h.offset + h.counts.size - 1 for h in same_scale)
    shift = _needed_halvings(low, high, most)
    low, high = low >> shift, high >> shift
    counts = np.zeros(high - low + 1, np.int64)
    for h in same_scale:
        coarse = downscaled(h, scale - shift)
        counts[coarse.offset - low : coarse.offset - low + coarse.counts.size] += coarse.counts
    return Histogram(scale - shift, low, counts, zeros)


def _needed_halvings(low: int, high: int, most: int) -> int:
    """Number of times that places must be halved until at most ``most`` buckets reach from the lowest to the highest."""
    shift = 0
    while (high >> shift) - (low >> shift) >= most and shift < MAX_HALVINGS:
        shift += 1
    return shift


def downscaled(h: Histogram, scale: int) -> Histogram:
    """The histogram with coarser buckets, of the given scale; DataError if ``scale`` is finer than the histogram's.

    >>> downscaled(Histogram(1, 1, np.array([4, 2, 1])), 0)
    Histogram(scale=0, offset=0, counts=array([4, 3]), zeros=0)
    """
    shift = h.scale - scale
    if shift < 0:
        what = f"a histogram of scale {h.scale} cannot be made finer ({scale})"
        raise DataError(what, "its buckets are as fine as they were counted", f"use a scale of at most {h.scale}")
    if shift == 0 or h.counts.size == 0:
        return Histogram(scale, h.offset if h.counts.size else 0, h.counts, h.zeros)
    shift = min(shift, MAX_HALVINGS)
    # The first bucket of each coarser one: the first of all, and from there on every 2^shift-th place.
    starts = np.r_[0, np.arange((-h.offset - 1) % (1 << shift) + 1, h.counts.size, 1 << shift)]
    return Histogram(scale, h.offset >> shift, np.add.reduceat(h.counts, starts, dtype=np.int64), h.zeros)


def edges(h: Histogram) -> Array:
    """Bounds of the buckets, (B + 1,), increasing within ``EXPONENTS``; a single 0 if there are no buckets.

    >>> edges(histogram_of([1, 2, 4], scale=0))
    array([0.5, 1. , 2. , 4. ])
    """
    return np.asarray(np.exp2(_exponents(h))) if h.counts.size else np.zeros(1)


def _exponents(h: Histogram) -> Array:
    """Binary logarithms of the bounds, (B + 1,)."""
    places = h.offset + np.arange(h.counts.size + 1, dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(places, -h.scale), *EXPONENTS)


def total(h: Histogram) -> int:
    """Number of calls in the histogram.

    >>> total(histogram_of([0, 1, 2]))
    3
    """
    return int(h.counts.sum()) + h.zeros


def cdf(h: Histogram, x: ArrayLike) -> Array:
    """Share of the calls that took at most x (k,) -> (k,); 0 if there are no calls.

    >>> cdf(histogram_of([1, 4, 4, 4], scale=0), [0.5, 1, 2, 2 * 2**0.5, 5]).tolist()
    [0.0, 0.25, 0.25, 0.625, 1.0]
    """
    places = np.asarray(x, dtype=np.float64)
    n = total(h)
    if n == 0:
        return np.zeros(places.shape)
    if h.counts.size == 0:
        return np.where(places >= 0, 1.0, 0.0)
    exponents = np.log2(np.where(places > 0, places, MIN_POSITIVE))
    below = np.interp(exponents, _exponents(h), np.concatenate(([0], np.cumsum(h.counts))))
    return np.asarray(np.where(places >= 0, (below + h.zeros) / n, 0.0))


def quantile(h: Histogram, q: ArrayLike) -> Array:
    """Durations that shares q (k,) of the calls do not exceed, (k,); NaN if there are no calls.

    >>> quantile(histogram_of([1, 4, 4, 4], scale=0), [0, 0.25, 0.625, 1]).round(3).tolist()
    [0.5, 1.0, 2.828, 4.0]
    """
    share, n = np.asarray(q, dtype=np.float64), total(h)
    if n == 0:
        return np.full(share.shape, np.nan)
    if h.counts.size == 0:
        return np.zeros(share.shape)
    # Empty buckets hold no quantile: mass jumps from the right end of a held bucket to the left end of the next.
    held, exponents = np.flatnonzero(h.counts), _exponents(h)
    below = np.cumsum(h.counts)[held]
    mass = np.stack([below - h.counts[held], below], axis=1).ravel()
    ends = np.stack([exponents[held], exponents[held + 1]], axis=1).ravel()
    wanted = share * n - h.zeros
    right = np.clip(np.searchsorted(mass, wanted, side="left"), 1, mass.size - 1)
    width = mass[right] - mass[right - 1]
    part = np.clip((wanted - mass[right - 1]) / np.where(width > 0, width, 1), 0.0, 1.0)
    found = np.exp2(ends[right - 1] + part * (ends[right] - ends[right - 1]))
    return np.asarray(np.where((wanted <= 0) & (h.zeros > 0), 0.0, found))


def mean_duration(h: Histogram) -> float:
    """Mean duration, from the middles of the buckets; 0 without calls.

    >>> round(mean_duration(histogram_of([3, 3, 6])), 1)
    4.0
    """
    n = total(h)
    if n == 0 or not h.counts.size:
        return 0.0
    bounds = edges(h)
    return float(np.sqrt(bounds[1:] * bounds[:-1]) @ h.counts) / n


def clusters(h: Histogram, borders: ArrayLike) -> Array:
    """Calls in each cluster, (C,), for C − 1 increasing borders; a bucket that contains a border is divided.

    >>> clusters(histogram_of([0, 1, 4, 4], scale=0), [2.0])
    array([2., 2.])
    """
    below = cdf(h, np.asarray(borders, dtype=np.float64).ravel()) * total(h)
    return np.diff(np.r_[0.0, below, total(h)])


# ---- Batches. The variance of the sums of batches of m calls grows as m·σ²·τ_m, and τ_m rises to the autocorrelation
# time τ = 1 + 2·Σρ (the method of batch means; Flyvbjerg & Petersen, J. Chem. Phys. 91, 1989).

MIN_BATCHES = 31
"""Number of batches beyond the first from which on their variance is used: its own error is a quarter of it there."""


def batches_of(values: ArrayLike) -> Batches:
    """Sums over batches of 1, 2, 4, … durations (n,), in order.

    >>> batches_of([1, 2, 4, 0])
    Batches(batches=(4, 2, 1), sum_b=(3072, 3072, 3072), sum_bb=(5242880, 5242880, 9437184))
    """
    y = np.asarray(values, dtype=np.float64).ravel()
    positive = y > 0
    sums = np.zeros(y.size, np.int64)
    sums[positive] = np.floor(UNIT * np.log2(y[positive])).astype(np.int64)
    rows: list[tuple[int, int, int]] = []
    while sums.size and len(rows) < LEVELS:
        rows.append((int(sums.size), int(sums.sum()), sum(each * each for each in sums.tolist())))
        sums = sums[: sums.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    return Batches(*(tuple(row[column] for row in rows) for column in range(3)))


def merged_batches(batches: Sequence[Batches]) -> Batches:
    """Batches of several stretches of time, added up.

    >>> merged_batches([batches_of([1, 2]), batches_of([4])])
    Batches(batches=(3, 1), sum_b=(3072, 1024), sum_bb=(5242880, 1048576))
    """
    levels = max((len(one.batches) for one in batches), default=0)

    def added(name: str) -> tuple[int, ...]:
        columns = [getattr(one, name) for one in batches]
        return tuple(sum(column[level] for column in columns if level < len(column)) for level in range(levels))

    return Batches(added("batches"), added("sum_b"), added("sum_bb"))


def autocorrelation_time(stretches: Sequence[Batches]) -> float:
    """Autocorrelation time τ ≥ 1: how many calls of one stretch of time are worth one independent call.

    Variances are taken about the mean of each stretch, so changes from one stretch to the next do not count. Of all sizes
    with more than ``MIN_BATCHES`` batches the one with the largest τ counts: smaller ones see part of the correlation.

    >>> rng = np.random.default_rng(0)
    >>> round(autocorrelation_time([batches_of(level * rng.lognormal(5, 1, 1024)) for level in (1, 100)]), 1)
    1.1
    """
    time, single_calls = 1.0, math.nan
    for level in range(max((len(one.batches) for one in stretches), default=0)):
        freedom, squares = 0, 0.0
        for one in stretches:
            if level < len(one.batches) and (count := one.batches[level]) > 1:
                freedom += count - 1
                # Exact before the division; damaged sums give no negative squares.
                squares += max(count * one.sum_bb[level] - one.sum_b[level] ** 2, 0) / count
        variance = squares / max(freedom, 1)
        if level == 0:
            single_calls = variance
        if freedom < MIN_BATCHES or not single_calls > 0:
            break
        time = max(time, variance / single_calls / 2.0**level)
    return time


def independent_calls(batches: Batches, n: float) -> float:
    """How many independent calls n calls are worth, at most n.

    >>> rng = np.random.default_rng(0)
    >>> 2000 < independent_calls(batches_of(rng.lognormal(5, 1, 4096)), 4096) <= 4096
    True
    """
    return n / autocorrelation_time([batches])
