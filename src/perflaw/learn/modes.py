"""Modes of one-dimensional data: borders between clusters of values, and none for a single cluster.

Densities live on the logarithm, so that heavy tails make no false modes: a histogram of the cumulative mass (ties are
spread over their cells, ticks of a clock over the tick) is smoothed with Silverman's bandwidth. Minima of the density that
are deep, significant and have mass on both sides are borders; the parts between them are searched again (specs/mining.md,
"Borders"). Freud §4.3 takes all minima.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]

MIN_TIES = 3.0
"""From so many points per distinct value on, ties are spread over their cells."""
MIN_TEETH, MIN_TOOTH_SHARE = 6, 0.02
"""A comb has at least so many teeth, each with that share of the points."""
SMALLEST, ROUNDING = 1e-280, 1e-12
"""Numbers below the first are 0, relative differences below the second are rounding."""
BLUR_REACH = 1000.0
"""Values larger than so many widths of the blur are not blurred."""
COMB_BINS = 1 << 15
"""Number of bins of the histogram in which a comb (values at multiples of an unknown tick) is searched."""
BINS = 2048
"""Number of bins of the histogram."""
MIN_Z, MAX_VALLEY, MIN_MASS = 4.0, 0.7, 0.05
"""A border needs a valley so many standard deviations below the lower peak, at most so high, and so much mass each side."""
NARROWER = (0.5, 0.25)
"""Bandwidths that are tried after Silverman's, relative to it."""
DEPTH, MIN_PART = 2, 200
"""How often parts are searched again, and the smallest number of points of such a part."""
DUST = 1e-100
"""Relative to the largest number, what is as good as 0."""
PAPER_POINTS, PAPER_GRID = 1000, 512
"""Number of points and places of the paper's density."""


def find_borders(
    y: Array, tick: float = 0.0, weights: Array | None = None, worth: float | None = None, resolution: float = 0.0
) -> Array:
    """Borders between modes of y, (k,), increasing, in y's unit; none for unimodal data.

    ``tick`` is the clock's step (0: unknown, combs in the data are searched), ``weights`` are sampling weights (n,),
    ``worth`` is the number of independent points (less than n for autocorrelated or weighted data), ``resolution`` the
    difference below which values differ by measurement alone (0: the tick).

    >>> rng = np.random.default_rng(0)
    >>> find_borders(rng.pareto(1.5, 5000) + 1).size
    0
    >>> fast, slow = rng.lognormal(0, 0.2, 600), rng.lognormal(2, 0.2, 400)
    >>> [round(float(border), 1) for border in find_borders(np.concatenate([fast, slow]))]
    [2.8]
    """
    y = np.asarray(y, dtype=np.float64)
    size = np.abs(y)
    # Numbers beside which the others are out of all proportion are 0: their ratios would overflow.
    clean = np.where(size < max(DUST * size.max(initial=0.0), DUST**2), 0.0, y)
    mass = mass_of_points(clean, tick, weights, resolution)
    if mass is None:
        return np.zeros(0)
    borders = borders_of_mass(mass, worth)
    return distinct_borders(y, borders, resolution) if resolution > 0 else borders


def borders_of_mass(mass: Mass, worth: float | None = None, min_z: float = MIN_Z) -> Array:
    """Borders between modes of a mass, (k,), increasing; ``min_z``: standard deviations that a valley needs."""
    return DensitySearch(mass, worth).borders(min_z)


def distinct_borders(y: Array, borders: Array, least: float, factor: float = 1.0) -> Array:
    """Borders (k,) between clusters whose medians differ by more than ``least`` and by ``factor``.

    The border of the smallest difference is removed first.

    >>> values = np.repeat([100.0, 130.0, 400.0], 50)
    >>> distinct_borders(values, np.array([115.0, 200.0]), 50.0)
    array([200.])
    """
    while borders.size:
        label = cluster_labels(y, borders)
        clusters = range(borders.size + 1)
        median = np.array([np.median(y[label == i]) if (label == i).any() else np.nan for i in clusters])
        needed = np.maximum(least, (factor - 1.0) * np.abs(median[:-1]))
        with np.errstate(over="ignore"):  # an infinite ratio is large enough
            ratio = np.nan_to_num(np.diff(median) / np.maximum(needed, 1e-300), nan=0.0)
        if ratio.min() >= 1.0:
            break
        borders = np.delete(borders, int(ratio.argmin()))
    return borders


def cluster_labels(y: Array, borders: Array) -> NDArray[np.intp]:
    """Number of the cluster of every point, (n,), given the borders."""
    return np.searchsorted(borders, y, side="right")


def paper_borders(y: Array) -> Array:
    """Freud's borders (§4.3), for ``--paper``: all local minima of a variable-bandwidth density of y, (k,).

    Bandwidths are Silverman's over the square root of a first density (Abramson 1982); no minimum is tested.
    """
    if y.size < 2 or np.ptp(y) == 0:
        return np.zeros(0)
    points = np.sort(y)[np.linspace(0, y.size - 1, min(y.size, PAPER_POINTS)).astype(np.intp)]
    spread = np.subtract(*np.percentile(points, [75, 25])) / 1.349
    bandwidth = 0.9 * (min(float(points.std()), spread) or float(points.std())) * points.size**-0.2
    pilot = np.exp(-0.5 * ((points[:, None] - points) / bandwidth) ** 2).mean(axis=1)
    local = bandwidth / np.sqrt(pilot / np.exp(np.log(pilot).mean()))
    grid = np.linspace(points[0] - 2 * bandwidth, points[-1] + 2 * bandwidth, PAPER_GRID)
    density = (np.exp(-0.5 * ((grid[:, None] - points) / local) ** 2) / local).sum(axis=1)
    return grid[local_minima(density)]


# ---- The cumulative mass of the data, with ties and clock ticks spread out.


@dataclass(frozen=True, slots=True)
class Mass:
    """Share of the points below any place, linear between knots."""

    knots: Array
    """Places, (m,), increasing, unit of y."""
    share: Array
    """Share of the mass below each knot, (m,), from 0 to 1."""
    forward: Callable[[Array], Array]
    """From the unit of y to the scale on which densities live: the logarithm if all knots are positive."""
    back: Callable[[Array], Array]
    """The inverse of ``forward``."""
    worth: float
    """Number of independent points."""
    blur: float = 0.0
    """Width, in the unit of y, over which every point is spread evenly: the resolution of the measurement."""
    grain: float = 0.0
    """Usual width of the cell of a value, on the transformed scale; 0 if single points are known."""

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
        share = np.asarray(np.interp(y, self.knots, self.share))
        # Far beyond its width a blur changes nothing, and differences of areas have no digits left.
        blurred = np.abs(y) < BLUR_REACH * self.blur
        if not blurred.any():
            return share
        upper, lower = (self._area(y[blurred] + sign * self.blur / 2) for sign in (1.0, -1.0))
        share[blurred] = np.clip((upper - lower) / self.blur, 0.0, 1.0)
        return np.maximum.accumulate(share)

    def _area(self, y: Array) -> Array:
        """Integral of the share up to places in the unit of y, (k,) -> (k,): quadratic between knots."""
        areas = np.r_[0.0, np.cumsum(np.diff(self.knots) * (self.share[1:] + self.share[:-1]) / 2)]
        at = np.clip(np.searchsorted(self.knots, y, side="right") - 1, 0, self.knots.size - 1)
        share = np.interp(y, self.knots, self.share)
        beyond = np.maximum(y - self.knots[at], 0.0)
        return np.asarray(areas[at] + beyond * (self.share[at] + share) / 2 * (y > self.knots[0]))


def mass_of_points(y: Array, tick: float, weights: Array | None, resolution: float = 0.0) -> Mass | None:
    """The mass of y (n,), blurred by the resolution; None if y hardly varies."""
    if y.size < 2:
        return None
    if weights is None:
        place, weight, worth = np.sort(y), None, float(y.size)
    else:
        order = np.argsort(y, kind="stable")
        place, weight = y[order], weights[order]
        worth = float(weights.sum() ** 2 / (weights**2).sum())  # Kish 1965
    largest = max(abs(float(place[0])), abs(float(place[-1])))
    if largest < SMALLEST or place[-1] - place[0] <= ROUNDING * largest:
        return None
    distinct, heap = _distinct(place, weight)
    tied = y.size / distinct.size >= MIN_TIES
    step = tick if tick > 0 or tied else _comb_step(distinct, heap)
    if step > 0:
        distinct, heap = _distinct(np.round(distinct / step) * step, heap)
    if distinct.size < 2:
        return None
    if step > 0 or tied:
        left, right = _half_gaps(distinct)
        if step > 0:
            left = right = np.full(distinct.size, step / 2)
        low = distinct - left
        if distinct[0] > 0:
            low = np.maximum(low, min(float(distinct[0]) / 2, float(left[0]) / 50))
        mass = mass_of_cells(low, np.maximum(distinct + right, low), heap, worth)
    else:
        # The mass lies evenly between neighbouring points.
        share = np.cumsum(heap)
        mass = _on_scale(distinct, (share - heap[0]) / (share[-1] - heap[0]), 0.0, worth)
    return mass if resolution <= tick else replace(mass, blur=resolution)


def mass_of_cells(low: Array, high: Array, heap: Array, worth: float) -> Mass:
    """Mass (m,) that lies evenly over cells from ``low`` to ``high`` (m,), increasing, which do not overlap.

    >>> mass_of_cells(np.array([1.0, 3.0]), np.array([2.0, 4.0]), np.array([1.0, 3.0]), 4.0).below(np.log([1.5, 2, 3.5]))
    array([0.125, 0.25 , 0.625])
    """
    knots = np.maximum.accumulate(np.stack([low, high], axis=1).ravel())
    share = np.cumsum(heap) / heap.sum()
    steps = np.stack([share - heap / heap.sum(), share], axis=1).ravel()
    mass = _on_scale(knots, steps, float((high - low).min()), worth)
    middle = int(np.searchsorted(share, 0.5))
    width = float(np.diff(mass.forward(np.array([low[middle], high[middle]])))[0])
    return replace(mass, grain=width)


def grown_cells(low: Array, high: Array) -> tuple[Array, Array]:
    """Cells (m,), m > 1, extended into the gaps beside them as the cells of tied points would be, without overlap."""
    middle = (low + high) / 2
    left, right = _half_gaps(middle)
    inside = np.maximum(low[1:] - high[:-1], 0.0) / 2
    before, after = np.concatenate((left[:1], inside)), np.concatenate((inside, right[-1:]))
    below = low - np.clip(left - (middle - low), 0.0, before)
    return np.maximum(below, low / 2), high + np.clip(right - (high - middle), 0.0, after)


def _distinct(place: Array, weight: Array | None) -> tuple[Array, Array]:
    """Distinct values of sorted places and the weight of each."""
    starts = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    if weight is None:
        return place[starts], np.diff(np.r_[starts, place.size]).astype(np.float64)
    return place[starts], np.add.reduceat(weight, starts)


def _half_gaps(distinct: Array) -> tuple[Array, Array]:
    """Half of the gap to each neighbour, cut at 1.5 times the median of the gaps around."""
    gap = np.diff(distinct)
    padded = np.concatenate((gap[:1], gap[:1], gap, gap[-1:], gap[-1:]))
    around = np.partition(sliding_window_view(padded, 5), 2, axis=1)[:, 2]
    usual = np.minimum(gap, 1.5 * around) / 2
    return np.concatenate((gap[:1] / 2, usual)), np.concatenate((usual, gap[-1:] / 2))


def _on_scale(knots: Array, share: Array, step: float, worth: float) -> Mass:
    """The mass on the logarithm, or, if not all knots are positive, on the area sine, linear up to the usual size."""
    if knots[0] > 0:
        return Mass(knots, share, np.log, np.exp, worth)
    unit = max(step, float(np.median(np.abs(knots[knots != 0]))))
    return Mass(knots, share, lambda y: np.arcsinh(y / unit), lambda t: np.sinh(t) * unit, worth)


def _comb_step(distinct: Array, heap: Array) -> float:
    """Smallest step that the values are multiples of, from a significant line in their spectrum; 0 without one.

    The characteristic function first falls to nothing (the shape); a comb brings it back at one over its step.
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
    step = (high - low) / peak
    teeth = np.bincount(np.round((distinct[inside] - low) / step).astype(np.int64), heap[inside])
    # Two or three narrow modes are no comb, however regular their distances are.
    return step if np.count_nonzero(teeth > MIN_TOOTH_SHARE * total) >= MIN_TEETH else 0.0


# ---- The search for borders in the density of a mass.


@dataclass(frozen=True, slots=True)
class Extrema:
    """The minima of a smoothed histogram and the peaks between them, of which the weakest are dropped one after the other."""

    valleys: list[int]
    """Places of the minima, increasing."""
    peaks: list[int]
    """Places of the peaks, one more: before, between and behind the minima."""
    low: list[float]
    """Smoothed counts at the minima."""
    high: list[float]
    """Smoothed counts at the peaks."""
    below: list[float]
    """Share of all points left of each minimum."""

    @classmethod
    def of(cls, height: Array, cumulated: Array) -> Extrema:
        """All those of smoothed counts (n,), of points whose share left of each edge is ``cumulated`` (n + 1,)."""
        valleys = local_minima(height)
        peaks = [a + int(height[a:b].argmax()) for a, b in pairwise([0, *valleys, height.size])]
        return cls(valleys, peaks, height[valleys].tolist(), height[peaks].tolist(), cumulated[valleys].tolist())

    def copy(self) -> Extrema:
        """The same, of which others can be dropped."""
        return Extrema([*self.valleys], [*self.peaks], [*self.low], [*self.high], [*self.below])

    def drop(self, place: int) -> None:
        """Drop a minimum and the lower of the peaks beside it."""
        lower = place if self.high[place] < self.high[place + 1] else place + 1
        del self.valleys[place], self.low[place], self.below[place], self.peaks[lower], self.high[lower]


@dataclass(frozen=True, slots=True)
class SmoothedDensity:
    """What the strength of borders in a smoothed histogram depends on."""

    bins: int
    """Number of bins."""
    whole: float
    """Share of all points in it."""
    effective: float
    """Points under the kernel per unit of height, which give the uncertainty of a height."""
    min_z: float
    """Standard deviations that a valley needs."""

    def strength(self, extrema: Extrema, i: int) -> float:
        """Strength of the border in a valley: infinite if it stays, else the weakest one is dropped first."""
        valley, peak = extrema.low[i], min(extrema.high[i], extrema.high[i + 1])
        points, peak_points = valley * self.effective, peak * self.effective
        z = (peak_points - points) / math.sqrt(points + peak_points + 1e-9)
        here = extrema.below[i]
        left = here - (extrema.below[i - 1] if i else 0.0)
        right = (extrema.below[i + 1] if i + 1 < len(extrema.below) else self.whole) - here
        heavy, real = min(left, right) >= MIN_MASS, z >= self.min_z and valley <= MAX_VALLEY * peak
        if real:
            # A light mode between two others belongs to the nearer one, however empty the valleys beside it are.
            apart = (extrema.peaks[i + 1] - extrema.peaks[i]) / self.bins
            return math.inf if heavy else 0.01 * self.min_z * (1.0 + apart)
        return z if heavy else 0.01 * min(z, self.min_z)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The histogram of a mass between two ends, and what was smoothed of it."""

    counts: Array
    """Points in each bin, (BINS,)."""
    inside: Array
    """Share of all points left of each edge, (BINS + 1,)."""
    edges: Array
    """Edges of the bins on the transformed scale, (BINS + 1,)."""
    width: float
    """Width of a bin."""
    bandwidths: list[float]
    """Bandwidths, in the order in which they are tried; none without points."""
    extrema: list[Extrema]
    """Those of the counts smoothed by the bandwidths that were tried so far."""


class DensitySearch:
    """The search for borders in a mass. What does not depend on how deep a valley has to be is computed once."""

    def __init__(self, mass: Mass, worth: float | None = None) -> None:
        """``worth``: number of independent points, by default that of the mass."""
        self.mass, self.worth = mass, mass.worth if worth is None else worth
        self._stretches: dict[tuple[float, float], _Stretch] = {}

    def borders(self, min_z: float = MIN_Z) -> Array:
        """Borders between modes, (k,), increasing; ``min_z``: standard deviations that a valley needs."""
        borders = self._search(self.mass.low, self.mass.high, DEPTH, min_z)
        return np.array([float(self.mass.back(np.array(border))) for border in sorted(borders)])

    def _search(self, low: float, high: float, depth: int, min_z: float) -> list[float]:
        """Borders on the transformed scale between two ends; the parts between borders are searched again."""
        borders = self._search_once(low, high, min_z)
        if not borders or depth == 0:
            return borders
        within = []
        for left, right in pairwise([low, *borders, high]):
            share = float(np.diff(self.mass.below(np.array([left, right])))[0])
            if share * self.worth >= MIN_PART and share >= 2 * MIN_MASS:
                within += self._search(left, right, depth - 1, min_z)
        return sorted([*borders, *within])

    def _search_once(self, low: float, high: float, min_z: float) -> list[float]:
        """Borders between two ends, by the first bandwidth that shows any."""
        if (low, high) not in self._stretches:
            self._stretches[low, high] = self._stretch(low, high)
        stretch = self._stretches[low, high]
        for number, bandwidth in enumerate(stretch.bandwidths):
            if number == len(stretch.extrema):
                height = smoothed(stretch.counts, bandwidth / stretch.width)
                stretch.extrema.append(Extrema.of(height, stretch.inside - stretch.inside[0]))
            effective = 2.0 * math.sqrt(math.pi) * bandwidth / stretch.width
            whole = float(stretch.inside[-1] - stretch.inside[0])
            density = SmoothedDensity(stretch.counts.size, whole, effective, min_z)
            if valleys := _strong_valleys(density, stretch.extrema[number].copy()):
                return [float(stretch.edges[place] + stretch.width / 2) for place in valleys]
        return []

    def _stretch(self, low: float, high: float) -> _Stretch:
        pad = 0.02 * (high - low) + 1e-9
        edges = np.linspace(low - pad, high + pad, BINS + 1)
        inside = self.mass.below(np.clip(edges, low, high))
        counts, width = np.diff(inside) * self.worth, float(edges[1] - edges[0])
        bandwidths = _bandwidths(counts, edges, width, self.mass.grain) if counts.sum() > 0 else []
        return _Stretch(counts, inside, edges, width, bandwidths, [])


def _bandwidths(counts: Array, edges: Array, width: float, grain: float) -> list[float]:
    """Silverman's 0.9·min(sd, IQR/1.349)·n^−0.2 (Silverman 1986, eq. 3.31), at least a bin, then others.

    It is too wide if narrow modes lie far apart, and too narrow for a wide mode beside a narrow one of most points.
    """
    centre, n = (edges[1:] + edges[:-1]) / 2, counts.sum()
    mean = (counts * centre).sum() / n
    sd = math.sqrt(max(float((counts * (centre - mean) ** 2).sum() / n), 1e-30))
    low, high = np.interp([0.25, 0.75], np.cumsum(counts) / n, centre)
    spread = float(high - low) / 1.349
    rule = 0.9 * float(n) ** -0.2
    usual = rule * (min(sd, spread) if spread > 0 else sd)
    wide = [rule * sd] if sd > 2.0 * spread else []
    narrow = [usual * part for part in NARROWER if usual * part >= grain]
    return [max(bandwidth, width) for bandwidth in (usual, *wide, *narrow)]


def _strong_valleys(density: SmoothedDensity, extrema: Extrema) -> list[int]:
    """Minima that stay when the weakest is dropped again and again until all are significant, deep and heavy.

    Of the ``extrema`` all others are dropped.
    """
    strength = [density.strength(extrema, i) for i in range(len(extrema.valleys))]
    while strength and (weakest := min(strength)) < math.inf:
        place = strength.index(weakest)
        extrema.drop(place)
        del strength[place]
        # Only the sides of its neighbours have changed.
        for i in range(max(place - 1, 0), min(place + 1, len(strength))):
            strength[i] = density.strength(extrema, i)
    return extrema.valleys


def local_minima(height: Array) -> list[int]:
    """Places of local minima strictly inside, the middle of flat ones."""
    starts = np.concatenate(([0], np.flatnonzero(height[1:] != height[:-1]) + 1))
    level = height[starts]
    ends = np.concatenate((starts[1:], [height.size])) - 1
    inner = np.flatnonzero((level[1:-1] < level[:-2]) & (level[1:-1] < level[2:])) + 1
    places: list[int] = ((starts[inner] + ends[inner]) // 2).tolist()
    return places


def smoothed(counts: Array, scale: float) -> Array:
    """Counts (n,) under a normal kernel of ``scale`` bins cut at five of them; nothing lies beyond the ends.

    It equals ``scipy.ndimage.gaussian_filter1d`` in a third of the time.
    """
    reach = int(5.0 * scale + 0.5)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    kernel /= kernel.sum()
    if kernel.size <= counts.size:  # what lies beyond the ends need not be computed
        return np.convolve(counts, kernel, "same")
    return np.convolve(counts, kernel)[reach : reach + counts.size]
