"""Borders between clusters of durations that lie in a histogram (Brünink & Rosenblum, §3.2; specs/mining.md, "Borders").

Buckets are equal cells on the logarithm, where densities live. Where the clock's step is wider than a bucket, only buckets
that hold a multiple of it hold calls: such a comb is spread over the step, so that its teeth are no modes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.modes import MIN_Z, Mass, borders_of_mass, distinct_borders, grown_cells, local_minima, mass_of_cells
from perflaw.learn.paths.histograms import EXPONENTS, edges, quantile, total
from perflaw.types import Histogram

Array = NDArray[np.float64]

PIECE, MOST_PIECES = 0.02, 32
"""Cells are cut into pieces of about so small a ratio, so that mass lies evenly on the logarithm in wide buckets as well."""
TICKS = (1e-30, 1e30)
"""Steps that a clock can have; one beyond is damaged, and as good as unknown."""
ROUGHER = 1.1
"""Cells by the clock's step are not used where they are so much rougher than buckets: it is not that of these durations."""
FEW_TEETH = 2.0
"""Where durations stand on a comb of that step, they may be rougher: a quick function has few teeth, and steep ones."""
MANY_STEPS = 100.0
"""A bucket so many of the clock's steps wide shows no comb."""
FINE, COMB, HARDLY = 0.25, 0.5, 0.1
"""Buckets below so small a part of the step show where the teeth stand; so much of them agrees on it where there is a comb;
so small a part of a step aside does not matter."""
CLOSEST, LOOKED_AT = 2.0, 2000
"""Clusters' medians lie so many of the clock's steps apart: what lasts as long each time shows as two neighbouring multiples
of the step, which is no difference between calls. So many quantiles give the medians."""
NOTHING = 50.0
"""Calls that took no time by the clock took between so small a part of half a step and half a step."""


def borders_of(h: Histogram, tick: float, worth: float | None = None, surest: float = MIN_Z) -> Array:
    """Borders between modes, (k,), increasing, in the histogram's unit; none for one mode.

    ``tick`` is the clock's step (0: unknown), ``worth`` how many independent calls these are worth (all of them),
    ``surest`` how many standard deviations below the lower peak a valley lies.

    >>> from perflaw.learn.paths.histograms import histogram_of
    >>> rng = np.random.default_rng(0)
    >>> fast, slow = rng.lognormal(5, 0.2, 600), rng.lognormal(7, 0.2, 400)
    >>> [round(float(border)) for border in borders_of(histogram_of([*fast, *slow]), 1.0)]
    [408]
    """
    if np.count_nonzero(h.counts) + (h.zeros > 0) < 2:
        return np.zeros(0)
    step = tick if TICKS[0] <= tick <= TICKS[1] else 0.0
    found = borders_of_mass(_mass(h, step), worth, surest)
    return (
        distinct_borders(quantile(h, (np.arange(LOOKED_AT) + 0.5) / LOOKED_AT), found, CLOSEST * step)
        if found.size
        else found
    )


def _mass(h: Histogram, tick: float) -> Mass:
    """Where the durations lie, as far as buckets and clock tell."""
    bounds, held = edges(h), np.flatnonzero(h.counts)
    low, high, heap = bounds[held], bounds[held + 1], h.counts[held].astype(np.float64)
    by_bucket = (*grown_cells(low, high), heap) if held.size > 1 else (low, high, heap)
    by_step = _ticked(low, high, heap, tick) if tick > 0 else by_bucket
    rougher = FEW_TEETH if tick > 0 and abs(_towards(low, high, heap, tick)) > COMB else ROUGHER
    fits = tick > 0 and _roughness(*by_step) <= rougher * _roughness(*by_bucket) + ROUGHER - 1
    low, high, heap = by_step if fits else by_bucket
    if h.zeros:
        # Shorter than half a step, if the step is known; on a comb the first two teeth tell it.
        least = min(tick / 2 if fits else float(high[0] - low[0]) / 2 or np.inf, float(low[0]))
        low, high, heap = np.r_[least / NOTHING, low], np.r_[least, high], np.r_[float(h.zeros), heap]
    return mass_of_cells(*_cut(low, high, heap), float(total(h)))


def _roughness(low: Array, high: Array, heap: Array) -> float:
    """How far cells differ from what their neighbours let expect, gaps included: about 1 if by chance alone.

    Where durations are no multiples of the step that is told, cells by that step hold too many calls here and too few there.
    """
    gap = np.flatnonzero(low[1:] > high[:-1] * (1 + 1e-9))
    place = np.r_[np.arange(low.size), gap + 0.5]
    order = np.argsort(place)
    low, high = np.r_[low, high[gap]][order], np.r_[high, low[gap + 1]][order]
    heap = np.r_[heap, np.zeros(gap.size)][order]
    if heap.size < 3:
        return 0.0
    width = np.log(np.maximum(high / low, 1 + 1e-12))
    density = heap / width
    expected = width[1:-1] * (density[:-2] + density[2:]) / 2
    return float(np.mean((heap[1:-1] - expected) ** 2 / (heap[1:-1] + expected + 1)))


def _ticked(low: Array, high: Array, heap: Array, tick: float) -> tuple[Array, Array, Array]:
    """Half a step on either side of the multiples of the step that a bucket holds, else of the nearest one.

    Buckets of many steps are as they are. What lies about one multiple is one cell.
    """
    wide = (high - low) >= MANY_STEPS * tick
    off = _offset(low, high, heap, tick)
    low, high = low - off, high - off
    first, last = np.floor(np.where(wide, 0, low) / tick) + 1, np.floor(np.where(wide, 0, high) / tick)
    nearest = np.maximum(np.round(np.where(wide, 0, low + high) / 2 / tick), float(off <= 0))
    none = last < first
    first, last = np.where(none, nearest, first), np.where(none, nearest, last)
    low, high = np.where(wide, low, (first - 0.5) * tick) + off, np.where(wide, high, (last + 0.5) * tick) + off
    low = np.maximum(low, tick / NOTHING)
    starts = np.flatnonzero(np.r_[True, low[1:] > np.maximum.accumulate(high)[:-1] - tick / 2])
    return low[starts], np.maximum.reduceat(high, starts), np.add.reduceat(heap, starts)


def _offset(low: Array, high: Array, heap: Array, tick: float) -> float:
    """How far the comb's teeth stand from the multiples of the step, within half a step; 0 where hardly, or no comb is seen.

    A recorder takes its own constant time out of a duration, which need not be a multiple of the clock's step.
    """
    towards = _towards(low, high, heap, tick)
    off = float(np.angle(towards)) / (2 * np.pi)
    return off * tick if abs(towards) > COMB and abs(off) > HARDLY else 0.0


def _towards(low: Array, high: Array, heap: Array, tick: float) -> complex:
    """Where within a step the calls of fine buckets stand, as a direction; its length, 0 … 1, is how far they agree on it."""
    fine = high - low < tick * FINE
    turns = np.exp(2j * np.pi * (low + high)[fine] / 2 / tick)
    return complex(heap[fine] @ turns) / max(float(heap[fine].sum()), 1.0)


def _cut(low: Array, high: Array, heap: Array) -> tuple[Array, Array, Array]:
    """Cells (m,) in pieces of equal ratio, (k,)."""
    ratio = np.log(high / low)
    parts = np.clip(np.ceil(ratio / PIECE), 1, MOST_PIECES).astype(np.intp)
    cell = np.repeat(np.arange(low.size), parts)
    place = np.arange(cell.size) - np.repeat(np.cumsum(parts) - parts, parts)
    step = (ratio / parts)[cell]
    below, above = low[cell] * np.exp(place * step), low[cell] * np.exp((place + 1) * step)
    return below, np.minimum(above, high[cell]), (heap / parts)[cell]


def paper_borders(h: Histogram) -> Array:
    """The paper's literal method, for ``--paper``: local minima of the gradient of the CDF, (k,)."""
    if h.counts.size == 0:
        return np.zeros(0)
    bounds = edges(h)
    gradient = h.counts / np.maximum(np.diff(bounds), 2.0 ** EXPONENTS[0])
    return np.array([np.sqrt(bounds[i] * bounds[i + 1]) for i in local_minima(gradient)])
