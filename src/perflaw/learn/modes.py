"""Modes of one-dimensional data: borders between clusters of responses, and nothing where there is one cluster.

On the logarithm, so that heavy tails make no false modes: a histogram of the cumulative mass (ties are spread over their
cells, ticks of a clock over the tick), smoothed with Silverman's bandwidth; minima of the density that are deep, sure and
have mass on both sides are borders, and again inside the parts (specs/mining.md, "Borders"). Freud §4.3 takes all minima.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.mass import Mass, mass_of, smoothed
from perflaw.learn.minima import minima

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
