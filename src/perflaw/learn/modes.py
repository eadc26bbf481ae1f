"""Modes of one-dimensional data: borders between clusters of responses, and nothing where there is one cluster.

On the logarithm, so that heavy tails make no false modes: a histogram of the cumulative mass (ties are spread over their
cells, ticks of a clock over the tick), smoothed with Silverman's bandwidth; minima of the density that are deep, sure and
have mass on both sides are borders, and again inside the parts (specs/mining.md, "Borders"). Freud §4.3 takes all minima.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

# ---- Cumulative mass of one-dimensional data, ties and clock ticks spread out: what densities are made of.

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


# ---- Local minima of densities, and Freud's own borders between modes: all of them.

MOST_POINTS, PAPER_GRID = 1000, 512
"""Points and places of the paper's density."""


def minima(height: Array) -> list[int]:
    """Places of local minima strictly inside, the middle of flat ones."""
    starts = np.flatnonzero(np.r_[True, np.diff(height) != 0])
    level = height[starts]
    ends = np.r_[starts[1:], height.size] - 1
    inner = np.flatnonzero((level[1:-1] < level[:-2]) & (level[1:-1] < level[2:])) + 1
    return [int(place) for place in (starts[inner] + ends[inner]) // 2]


def density_minima(y: Array) -> Array:
    """Freud's borders (§4.3), for ``--paper``: all local minima of a variable-bandwidth density of y, (k,).

    Bandwidths are Silverman's over the square root of a first density (Abramson 1982); no minimum is tested.
    """
    if y.size < 2 or np.ptp(y) == 0:
        return np.zeros(0)
    some = np.sort(y)[np.linspace(0, y.size - 1, min(y.size, MOST_POINTS)).astype(np.intp)]
    spread = np.subtract(*np.percentile(some, [75, 25])) / 1.349
    bandwidth = 0.9 * (min(float(some.std()), spread) or float(some.std())) * some.size**-0.2
    pilot = np.exp(-0.5 * ((some[:, None] - some) / bandwidth) ** 2).mean(axis=1)
    local = bandwidth / np.sqrt(pilot / np.exp(np.log(pilot).mean()))
    grid = np.linspace(some[0] - 2 * bandwidth, some[-1] + 2 * bandwidth, PAPER_GRID)
    height = (np.exp(-0.5 * ((grid[:, None] - some) / local) ** 2) / local).sum(axis=1)
    return grid[minima(height)]


Array = NDArray[np.float64]

GRID = 2048
"""Bins of the histogram."""
SUREST, DEEPEST, LEAST_MASS = 4.0, 0.7, 0.05
"""A border needs a valley so many standard deviations below the lower peak, at most so high, so much mass each side."""
NARROWER = (0.5, 0.25)
"""Bandwidths tried after Silverman's, relative to it."""
DEPTH, FEWEST_INSIDE = 2, 200
"""How often parts are searched again, and from how many points on."""


@dataclass(frozen=True, slots=True)
class _Density:
    """A smoothed histogram and its candidates."""

    height: Array
    """Smoothed counts, (GRID,)."""
    cumulated: Array
    """Share of all points left of each bin, (GRID + 1,)."""
    effective: float
    """Points under the kernel per unit of height: what a height's uncertainty comes from."""
    surest: float
    """Standard deviations that a valley needs."""


DUST = 1e-100
"""Of the largest number, what is as good as nothing."""


def borders(
    y: Array,
    tick: float = 0.0,
    weights: Array | None = None,
    worth: float | None = None,
    resolution: float = 0.0,
) -> Array:
    """Borders between modes of y, (k,), increasing, in y's unit; none for unimodal data.

    ``tick`` is the clock's step (0: unknown, combs in the data are looked for), ``weights`` sampling weights (n,),
    ``worth`` how many independent points they are worth (less than n for autocorrelated or weighted data),
    ``resolution`` the difference below which the measurement, not what is measured, makes two values (0: the tick).

    >>> rng = np.random.default_rng(0)
    >>> borders(rng.pareto(1.5, 5000) + 1).size
    0
    >>> fast, slow = rng.lognormal(0, 0.2, 600), rng.lognormal(2, 0.2, 400)
    >>> [round(float(border), 1) for border in borders(np.concatenate([fast, slow]))]
    [2.8]
    """
    mass = mass_of(_without_dust(np.asarray(y, dtype=np.float64)), tick, weights, resolution)
    if mass is None:
        return np.zeros(0)
    places = borders_of_mass(mass, worth)
    return apart(y, places, resolution) if resolution > 0 else places


def borders_of_mass(mass: Mass, worth: float | None = None, surest: float = SUREST) -> Array:
    """Borders between modes of a mass, (k,), increasing; ``surest``: standard deviations that a valley needs."""
    found = _search(mass, mass.low, mass.high, mass.worth if worth is None else worth, DEPTH, surest)
    return np.array([float(mass.back(np.array(border))) for border in sorted(found)])


def apart(y: Array, found: Array, least: float, factor: float = 1.0) -> Array:
    """Those borders (k,) whose clusters' medians differ by more than ``least`` and by ``factor``; the nearest go first.

    >>> values = np.repeat([100.0, 130.0, 400.0], 50)
    >>> apart(values, np.array([115.0, 200.0]), 50.0)
    array([200.])
    """
    while found.size:
        label = labels(y, found)
        middle = np.array([np.median(y[label == i]) if (label == i).any() else np.nan for i in range(found.size + 1)])
        needed = np.maximum(least, (factor - 1.0) * np.abs(middle[:-1]))
        with np.errstate(over="ignore"):  # infinitely far is far enough
            surplus = np.nan_to_num(np.diff(middle) / np.maximum(needed, 1e-300), nan=0.0)
        if surplus.min() >= 1.0:
            break
        found = np.delete(found, int(surplus.argmin()))
    return found


def _without_dust(y: Array) -> Array:
    """Numbers beside which the others are out of all proportion are 0: their ratios would not fit."""
    size = np.abs(y)
    return np.where(size < max(DUST * size.max(initial=0.0), DUST**2), 0.0, y)


def labels(y: Array, found: Array) -> NDArray[np.intp]:
    """Number of the cluster of every point, (n,), given the borders."""
    return np.searchsorted(found, y, side="right")


def _search(mass: Mass, low: float, high: float, worth: float, depth: int, surest: float) -> list[float]:
    """Borders on the transformed scale between two ends, parts searched again."""
    found = _once(mass, low, high, worth, surest)
    if not found or depth == 0:
        return found
    out, ends = list(found), [low, *found, high]
    for left, right in pairwise(ends):
        part = float(np.diff(mass.below(np.array([left, right])))[0])
        if part * worth >= FEWEST_INSIDE and part >= 2 * LEAST_MASS:
            out += _search(mass, left, right, worth, depth - 1, surest)
    return sorted(out)


def _once(mass: Mass, low: float, high: float, worth: float, surest: float) -> list[float]:
    """Borders of one density between two ends."""
    pad = 0.02 * (high - low) + 1e-9
    edges = np.linspace(low - pad, high + pad, GRID + 1)
    inside = mass.below(np.clip(edges, low, high))
    counts = np.diff(inside) * worth
    if counts.sum() <= 0:
        return []
    width = float(edges[1] - edges[0])
    for bandwidth in _bandwidths(counts, edges, width, mass.grain):
        height = smoothed(counts, bandwidth / width)
        density = _Density(height, inside - inside[0], 2.0 * math.sqrt(math.pi) * bandwidth / width, surest)
        found = _pruned(density)
        if found:
            return [float(edges[place] + width / 2) for place in found]
    return []


def _bandwidths(counts: Array, edges: Array, width: float, grain: float) -> list[float]:
    """Silverman's 0.9·min(sd, IQR/1.349)·n^−0.2, at least a bin (Silverman 1986, eq. 3.31), then others.

    It is too wide where narrow modes lie far apart, and too narrow for a wide mode beside a narrow one that holds most.
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


def _pruned(density: _Density) -> list[int]:
    """Minima that stay when the weakest is dropped again and again until all are sure, deep and heavy on both sides."""
    valleys = minima(density.height)
    bounds = [0, *valleys, density.height.size]
    peaks = [a + int(np.argmax(density.height[a:b])) for a, b in pairwise(bounds)]
    strength = [_strength(density, valleys, peaks, i) for i in range(len(valleys))]
    while valleys and (weakest := min(strength)) < math.inf:
        place = strength.index(weakest)
        lower = place if density.height[peaks[place]] < density.height[peaks[place + 1]] else place + 1
        del valleys[place], peaks[lower], strength[place]
        # Only its neighbours have other sides now.
        for i in range(max(place - 1, 0), min(place + 1, len(valleys))):
            strength[i] = _strength(density, valleys, peaks, i)
    return valleys


def _strength(density: _Density, valleys: list[int], peaks: list[int], i: int) -> float:
    """How good a border is: infinite where it stays, else what decides which one is dropped first."""
    height, cumulated = density.height, density.cumulated
    valley, peak = height[valleys[i]], min(height[peaks[i]], height[peaks[i + 1]])
    here, there = valley * density.effective, peak * density.effective
    z = (there - here) / math.sqrt(here + there + 1e-9)
    left = cumulated[valleys[i]] - (cumulated[valleys[i - 1]] if i else 0.0)
    right = (cumulated[valleys[i + 1]] if i + 1 < len(valleys) else cumulated[-1]) - cumulated[valleys[i]]
    heavy = min(left, right) >= LEAST_MASS
    if z >= density.surest and valley <= DEEPEST * peak and heavy:
        return math.inf
    return float(z if heavy else z * 0.01)
