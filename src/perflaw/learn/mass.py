"""Cumulative mass of one-dimensional data, ties and clock ticks spread out: what densities are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

Array = NDArray[np.float64]

TIES = 3.0
"""Points per distinct value from which ties are spread over their cells."""
MANY_TEETH, MANY_TEETH_SHARE = 6, 0.02
"""A comb has at least so many teeth, each with that share of the points."""
SMALLEST, RESOLVED = 1e-280, 1e-12
"""Numbers below the first are nothing, relative differences below the second are rounding."""
BLURRED = 1000.0
"""Values of so many times the blur's width are too large to feel it."""
COMB_BINS = 1 << 15
"""Bins of the histogram in which a comb (values at multiples of an unknown tick) is looked for."""


@dataclass(frozen=True, slots=True)
class Mass:
    """Share of the points below any place, linear between knots."""

    knots: Array
    """Places, (m,), increasing, unit of y."""
    share: Array
    """Share of the mass below each knot, (m,), from 0 to 1."""
    forward: Callable[[Array], Array]
    """From the unit of y to the scale densities live on: the logarithm where all is positive."""
    back: Callable[[Array], Array]
    """Its inverse."""
    worth: float
    """Independent points that it is made of."""
    blur: float = 0.0
    """Width, in the unit of y, over which every point is spread evenly: what the measurement cannot tell apart."""
    grain: float = 0.0
    """Usual width of a cell that a value is spread over, on the transformed scale; 0 where points are told apart."""

    @property
    def low(self) -> float:
        """Lower end on the transformed scale."""
        return float(self.forward(self.knots[:1])[0])

    @property
    def high(self) -> float:
        """Upper end on the transformed scale."""
        return float(self.forward(self.knots[-1:])[0])

    def below(self, places: Array) -> Array:
        """Share of the points below places on the transformed scale, increasing, (k,) -> (k,)."""
        y = self.back(places)
        sharp = np.asarray(np.interp(y, self.knots, self.share))
        # Far beyond its width a blur changes nothing, and areas have no digits left.
        near = np.abs(y) < BLURRED * self.blur
        if near.any():
            ends = [self._area(y[near] + sign * self.blur / 2) for sign in (1.0, -1.0)]
            sharp[near] = np.clip((ends[0] - ends[1]) / self.blur, 0.0, 1.0)
        return np.maximum.accumulate(sharp) if near.any() else sharp

    def _area(self, y: Array) -> Array:
        """Integral of the share up to places in the unit of y, (k,) -> (k,): quadratic between knots."""
        step = np.diff(self.knots)
        areas = np.r_[0.0, np.cumsum(step * (self.share[1:] + self.share[:-1]) / 2)]
        at = np.clip(np.searchsorted(self.knots, y, side="right") - 1, 0, self.knots.size - 1)
        share = np.interp(y, self.knots, self.share)
        inside = np.maximum(y - self.knots[at], 0.0)
        return np.asarray(areas[at] + inside * (self.share[at] + share) / 2 * (y > self.knots[0]))


def mass_of(y: Array, tick: float, weights: Array | None, resolution: float = 0.0) -> Mass | None:
    """The mass of y (n,), blurred by what was measured no more exactly; None where it hardly varies more than its tick."""
    mass = _mass(y, tick, weights)
    return mass if mass is None or resolution <= tick else replace(mass, blur=resolution)


def mass_of_cells(low: Array, high: Array, heap: Array, worth: float) -> Mass:
    """Mass (m,) that lies evenly over cells from ``low`` to ``high`` (m,), increasing, which do not overlap.

    >>> mass_of_cells(np.array([1.0, 3.0]), np.array([2.0, 4.0]), np.array([1.0, 3.0]), 4.0).below(np.log([1.5, 2, 3.5]))
    array([0.125, 0.25 , 0.625])
    """
    knots = np.maximum.accumulate(np.stack([low, high], axis=1).ravel())
    share = np.cumsum(heap) / heap.sum()
    steps = np.stack([share - heap / heap.sum(), share], axis=1).ravel()
    mass = _scaled(knots, steps, float((high - low).min()), worth)
    middle = int(np.searchsorted(share, 0.5))
    width = float(np.diff(mass.forward(np.array([low[middle], high[middle]])))[0])
    return replace(mass, grain=width)


def grown_cells(low: Array, high: Array) -> tuple[Array, Array]:
    """Cells (m,), m > 1, that reach into the gaps beside them as the cells of tied points would, and never overlap."""
    middle = (low + high) / 2
    left, right = _cells(middle)
    inside = np.maximum(low[1:] - high[:-1], 0.0) / 2
    before, after = np.r_[left[0], inside], np.r_[inside, right[-1]]
    below = low - np.clip(left - (middle - low), 0.0, before)
    return np.maximum(below, low / 2), high + np.clip(right - (high - middle), 0.0, after)


def _mass(y: Array, tick: float, weights: Array | None) -> Mass | None:
    """The mass as the points say."""
    if y.size < 2:
        return None
    place, weight, worth = _sorted(y, weights)
    largest = max(abs(float(place[0])), abs(float(place[-1])))
    if largest < SMALLEST or place[-1] - place[0] <= RESOLVED * largest:
        return None
    distinct, heap = _distinct(place, weight)
    tied = y.size / distinct.size >= TIES
    if tick <= 0 and not tied:
        tick = _comb(distinct, heap)
    if tick > 0:
        distinct, heap = _distinct(np.round(distinct / tick) * tick, heap)
    if distinct.size < 2:
        return None
    if tick > 0:
        left = right = np.full(distinct.size, tick / 2)
    elif tied:
        left, right = _cells(distinct)
    else:
        return _of_points(distinct, heap, worth)
    return _of_cells(distinct, heap, left, right, worth)


def _sorted(y: Array, weights: Array | None) -> tuple[Array, Array | None, float]:
    """Values in order, their weights, and how many independent points they are worth (Kish 1965)."""
    if weights is None:
        return np.sort(y), None, float(y.size)
    order = np.argsort(y, kind="stable")
    return y[order], weights[order], float(weights.sum() ** 2 / (weights**2).sum())


def _distinct(place: Array, weight: Array | None) -> tuple[Array, Array]:
    """Distinct values and the weight of each."""
    starts = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    if weight is None:
        return place[starts], np.diff(np.r_[starts, place.size]).astype(np.float64)
    return place[starts], np.add.reduceat(weight, starts)


def _cells(distinct: Array) -> tuple[Array, Array]:
    """Half of each gap to the neighbours, cut at 1.5 times what is usual around."""
    gap = np.diff(distinct)
    usual = np.minimum(gap, 1.5 * median_filter(gap, size=5, mode="nearest")) / 2
    return np.r_[gap[0] / 2, usual], np.r_[usual, gap[-1] / 2]


def _of_points(distinct: Array, heap: Array, worth: float) -> Mass:
    """Mass that lies between neighbouring points evenly."""
    share = np.cumsum(heap)
    return _scaled(distinct, (share - heap[0]) / (share[-1] - heap[0]), 0.0, worth)


def _of_cells(distinct: Array, heap: Array, left: Array, right: Array, worth: float) -> Mass:
    """Mass spread evenly over a cell around each distinct value."""
    low = distinct - left
    if distinct[0] > 0:
        low = np.maximum(low, min(float(distinct[0]) / 2, float(left[0]) / 50))
    high = np.maximum(distinct + right, low)
    return mass_of_cells(low, high, heap, worth)


def _scaled(knots: Array, share: Array, step: float, worth: float) -> Mass:
    """On the logarithm; where values are not all positive on the area sine, linear up to the usual size."""
    if knots[0] > 0:
        return Mass(knots, share, np.log, np.exp, worth)
    unit = max(step, float(np.median(np.abs(knots[knots != 0]))))
    return Mass(knots, share, lambda y: np.arcsinh(y / unit), lambda t: np.sinh(t) * unit, worth)


def _comb(distinct: Array, heap: Array) -> float:
    """Smallest step that the values are multiples of, from a sure line in their spectrum; 0 if there is none.

    The characteristic function first falls to nothing (the shape), a comb brings it back at one over its step.
    """
    share = np.cumsum(heap) / heap.sum()
    low, high = float(distinct[0]), float(distinct[min(int(np.searchsorted(share, 0.97)), distinct.size - 1)])
    if high <= low or distinct.size < 3:
        return 0.0
    inside = distinct <= high
    bins = ((distinct[inside] - low) * ((COMB_BINS - 1) / (high - low))).astype(np.int64)
    counts = np.bincount(bins, heap[inside], COMB_BINS)
    total = float(counts.sum())
    line = np.abs(np.fft.rfft(counts)) / max(total, 1.0)
    fallen = np.flatnonzero(line < 0.12)
    if fallen.size == 0:
        return 0.0
    back = np.flatnonzero(line[fallen[0] :] > max(0.35, 6.0 / math.sqrt(total)))
    if back.size == 0:
        return 0.0
    first = int(back[0] + fallen[0])
    peak = first + int(np.argmax(line[first : first + max(4, first // 8)]))
    tick = (high - low) / peak
    teeth = np.bincount(np.round((distinct[inside] - low) / tick).astype(np.int64), heap[inside])
    # Two or three narrow modes are no comb, however regularly they stand.
    return tick if np.count_nonzero(teeth > MANY_TEETH_SHARE * total) >= MANY_TEETH else 0.0


def smoothed(counts: Array, scale: float) -> Array:
    """Counts (n,) under a normal kernel of ``scale`` bins cut at five of them; nothing lies beyond the ends.

    A third of the time of ``scipy.ndimage.gaussian_filter1d``, whose results these are.
    """
    reach = int(5.0 * scale + 0.5)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    return np.convolve(counts, kernel / kernel.sum())[reach : reach + counts.size]
