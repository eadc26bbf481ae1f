"""Borders between clusters of durations, in a histogram and in each observation (Brünink & Rosenblum, §3.2).

Buckets are equal cells on the logarithm, where densities are estimated. If the clock's step is wider than a bucket, only
buckets that contain a multiple of the step hold calls. Such a comb is spread over the step, so that its teeth are no modes.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.learn.modes import MIN_Z, DensitySearch, Mass, distinct_borders, grown_cells, local_minima, mass_of_cells
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.durations import EXPONENTS, autocorrelation_time, cdf, edges, merged, quantile, total
from perflaw.types import Histogram, Observation, Observed

Array = NDArray[np.float64]
Kept = TypeVar("Kept")
Cells = tuple[Array, Array, Array]
"""Lower bounds, upper bounds and calls of cells, (m,) each."""
PIECE_RATIO, MAX_PIECES = 0.02, 32
"""Logarithm of the ratio of the bounds of the pieces that cells are cut into, and their largest number: mass is spread evenly
on the logarithm in wide cells as well."""
MOST_KEPT = 8192
"""Histograms whose borders are kept, which takes some 2 MB: those of some 40 recordings of 30 functions."""
MOST_MASSES = 128
"""Histograms of which it is kept where their durations lie, some 30 kB each: those of a function that is measured again and
again, which with each new measurement are worth another number of independent calls."""
_found: dict[bytes, tuple[tuple[float, ...], ...]] = {}
_masses: dict[bytes, _SearchedDurations] = {}
_guard = threading.Lock()
TICKS = (1e-30, 1e30)
"""Range of a clock's steps; a step beyond it is damaged, and counts as unknown."""
MAX_ROUGHNESS_RATIO = 1.1
"""Cells by the clock's step are used if they are at most this much rougher than buckets: else the step is not that of these
durations."""
MAX_COMB_ROUGHNESS_RATIO = 2.0
"""The same where durations lie on a comb of that step: a quick function has few teeth, and steep ones."""
MAX_STEPS = 100.0
"""Width of a bucket, in steps of the clock, from which on it shows no comb."""
FINE_STEPS, MIN_AGREEMENT, MIN_OFFSET = 0.25, 0.5, 0.1
"""Width of a bucket, in steps, below which it shows where the teeth of a comb lie; how far these buckets agree if there is a
comb (0 to 1); offset of the teeth, in steps, from which on it matters."""
MIN_DISTANCE_STEPS, MEDIAN_QUANTILES = 2.0, 2000
"""Smallest distance of clusters' medians, in steps of the clock: equal durations may show as two neighbouring multiples of
the step. Number of quantiles that the medians are taken of."""
ZERO_RATIO = 50.0
"""Calls that took no time by the clock lie between this fraction of half a step and half a step."""


def borders_of(h: Histogram, tick: float, worth: float | None = None, min_z: float = MIN_Z) -> Array:
    """Borders between modes, (k,), increasing, in the histogram's unit; none for one mode.

    ``tick`` is the clock's step (0: unknown), ``worth`` the number of independent calls (by default all calls),
    ``min_z`` how many standard deviations a valley lies below the lower peak.

    >>> from perflaw.learn.paths.durations import histogram_of
    >>> rng = np.random.default_rng(0)
    >>> fast, slow = rng.lognormal(5, 0.2, 600), rng.lognormal(7, 0.2, 400)
    >>> [round(float(border)) for border in borders_of(histogram_of([*fast, *slow]), 1.0)]
    [408]
    """
    (borders,) = _borders_by_depth(h, tick, worth, (min_z,))
    return borders


def _borders_by_depth(h: Histogram, tick: float, worth: float | None, depths: tuple[float, ...]) -> list[Array]:
    """Borders as :func:`borders_of` for each ``min_z``; none for the later ones if the first shows none.

    Models of several selections of the same recordings, and the specification after them, ask for the same ones.
    """
    about = repr((h.scale, h.offset, h.zeros, tick, worth, depths)).encode()
    key = _key(about + np.ascontiguousarray(h.counts, dtype=np.int64).tobytes())
    with _guard:
        found = _found.pop(key, None)
    if found is None:
        found = tuple(tuple(borders.tolist()) for borders in _search_by_depth(h, tick, worth, depths))
    _keep(_found, key, found, MOST_KEPT)
    return [np.array(borders, dtype=np.float64) for borders in found]


def _key(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _keep(kept: dict[bytes, Kept], key: bytes, value: Kept, most: int) -> None:
    """Keep a value as the last one to go of at most so many."""
    with _guard:
        kept[key] = value
        if len(kept) > most:
            del kept[next(iter(kept))]


class _SearchedDurations:
    """What a search for borders needs of durations, however many independent calls they are worth."""

    def __init__(self, h: Histogram, step: float) -> None:
        self._h, self.mass = h, _mass(h, step)

    @cached_property
    def quantiles(self) -> Array:
        """Evenly spaced quantiles, (MEDIAN_QUANTILES,)."""
        return quantile(self._h, (np.arange(MEDIAN_QUANTILES) + 0.5) / MEDIAN_QUANTILES)

    @classmethod
    def of(cls, h: Histogram, step: float) -> _SearchedDurations:
        """Those of a histogram, made once for several searches of it."""
        about = repr((h.scale, h.offset, h.zeros, step)).encode()
        key = _key(about + np.ascontiguousarray(h.counts, dtype=np.int64).tobytes())
        with _guard:
            known = _masses.pop(key, None)
        made = known or cls(h, step)
        _keep(_masses, key, made, MOST_MASSES)
        return made


def _search_by_depth(h: Histogram, tick: float, worth: float | None, depths: tuple[float, ...]) -> list[Array]:
    borders = [np.zeros(0) for _ in depths]
    if np.count_nonzero(h.counts) + (h.zeros > 0) < 2:
        return borders
    step = tick if TICKS[0] <= tick <= TICKS[1] else 0.0
    durations = _SearchedDurations.of(h, step)
    search = DensitySearch(durations.mass, worth)
    for place, min_z in enumerate(depths):
        found = search.borders(min_z)
        if not found.size:
            break
        borders[place] = distinct_borders(durations.quantiles, found, MIN_DISTANCE_STEPS * step)
        if not borders[0].size:
            break
    return borders


def paper_borders(h: Histogram) -> Array:
    """The paper's literal method, for ``--paper``: local minima of the gradient of the CDF, (k,)."""
    if h.counts.size == 0:
        return np.zeros(0)
    bounds = edges(h)
    gradient = h.counts / np.maximum(np.diff(bounds), 2.0 ** EXPONENTS[0])
    return np.array([np.sqrt(bounds[i] * bounds[i + 1]) for i in local_minima(gradient)])


def _mass(h: Histogram, tick: float) -> Mass:
    """Where the durations lie, as far as buckets and the clock tell."""
    bounds, held = edges(h), np.flatnonzero(h.counts)
    low, high, calls = bounds[held], bounds[held + 1], h.counts[held].astype(np.float64)
    by_bucket = (*grown_cells(low, high), calls) if held.size > 1 else (low, high, calls)
    by_step, direction = by_bucket, 0j
    if tick > 0:
        # Where within a step the calls of fine buckets lie, as a direction; its length, 0 to 1, tells how far they agree.
        fine = high - low < tick * FINE_STEPS
        turns = np.exp(2j * np.pi * (low + high)[fine] / 2 / tick)
        direction = complex(calls[fine] @ turns) / max(float(calls[fine].sum()), 1.0)
        by_step = _cells_by_step(low, high, calls, tick, direction)
    # A quick function shows few teeth, and steep ones: on a comb, cells by the step may be rougher.
    ratio = MAX_COMB_ROUGHNESS_RATIO if abs(direction) > MIN_AGREEMENT else MAX_ROUGHNESS_RATIO
    uses_step = tick > 0 and _roughness(*by_step) <= ratio * _roughness(*by_bucket) + MAX_ROUGHNESS_RATIO - 1
    low, high, calls = by_step if uses_step else by_bucket
    if h.zeros:
        # Calls that took no time are shorter than half a step; if it is unknown, the first cell's width stands for it.
        least = min(tick / 2 if uses_step else float(high[0] - low[0]) / 2 or np.inf, float(low[0]))
        first = (least / ZERO_RATIO, least, float(h.zeros))
        low, high, calls = (
            np.concatenate(([one], column)) for one, column in zip(first, (low, high, calls), strict=True)
        )

    # Cells are cut into pieces of equal ratio.
    extent = np.log(high / low)
    parts = np.clip(np.ceil(extent / PIECE_RATIO), 1, MAX_PIECES).astype(np.intp)
    cell = np.repeat(np.arange(low.size), parts)
    place = np.arange(cell.size) - np.repeat(np.cumsum(parts) - parts, parts)
    step = (extent / parts)[cell]
    below, above = low[cell] * np.exp(place * step), low[cell] * np.exp((place + 1) * step)
    return mass_of_cells(below, np.minimum(above, high[cell]), (calls / parts)[cell], float(total(h)))


def _roughness(low: Array, high: Array, calls: Array) -> float:
    """How far cells differ from what their neighbours let expect, gaps included: about 1 if by chance alone.

    If durations are no multiples of the clock's step, cells by that step hold too many calls here and too few there.
    """
    gap = np.flatnonzero(low[1:] > high[:-1] * (1 + 1e-9))
    order = np.argsort(np.concatenate((np.arange(low.size), gap + 0.5)))
    low, high = np.concatenate((low, high[gap]))[order], np.concatenate((high, low[gap + 1]))[order]
    calls = np.concatenate((calls, np.zeros(gap.size)))[order]
    if calls.size < 3:
        return 0.0
    width = np.log(np.maximum(high / low, 1 + 1e-12))
    density = calls / width
    expected = width[1:-1] * (density[:-2] + density[2:]) / 2
    return float(np.mean((calls[1:-1] - expected) ** 2 / (calls[1:-1] + expected + 1)))


def _cells_by_step(low: Array, high: Array, calls: Array, tick: float, direction: complex) -> Cells:
    """Cells that reach half a step to either side of the multiples of the step in a bucket, or of the nearest one.

    Buckets that are many steps wide stay as they are. A recorder subtracts its own constant time from a duration, which
    need not be a multiple of the step, so the teeth of a comb may stand off the multiples.
    """
    turn = float(np.angle(direction)) / (2 * np.pi)
    offset = turn * tick if abs(direction) > MIN_AGREEMENT and abs(turn) > MIN_OFFSET else 0.0
    wide = (high - low) >= MAX_STEPS * tick
    low, high = low - offset, high - offset
    first, last = np.floor(np.where(wide, 0, low) / tick) + 1, np.floor(np.where(wide, 0, high) / tick)
    nearest = np.maximum(np.round(np.where(wide, 0, low + high) / 2 / tick), float(offset <= 0))
    none = last < first
    first, last = np.where(none, nearest, first), np.where(none, nearest, last)
    low = np.maximum(np.where(wide, low, (first - 0.5) * tick) + offset, tick / ZERO_RATIO)
    high = np.where(wide, high, (last + 0.5) * tick) + offset
    # Cells around the same multiple are one cell.
    starts = np.flatnonzero(np.concatenate(([True], low[1:] > np.maximum.accumulate(high)[:-1] - tick / 2)))
    return low[starts], np.maximum.reduceat(high, starts), np.add.reduceat(calls, starts)


# ---- The borders that each observation shows on its own, and the share of the calls below them.

MIN_INDEPENDENT_CALLS = 200.0
"""Number of independent calls from which on borders are found as a rule; below, hardly any is found."""
MIN_TICK_NS = 1.0
"""Step of recorded durations, which are whole ns however fine the clock is."""


LEAST_PLACE_NS = 1.0
"""Durations below it count as so long where they are compared on the logarithm."""
LEAST_DURATION_NS = 1000.0
"""Functions that take less in nearly all calls are not specified: recording a call takes a part of that time."""
PERTURBED, TOO_SHORT = "perturbed: ", "too short: "
"""How the note of a function begins that has to be recorded alone, and of one that is too short to be specified."""


def without_perturbed(observed: Observed, options: MiningOptions) -> Observed:
    """The observations whose durations recording itself did not lengthen, with a note of those left out.

    Probes of nested calls may take at most ``options.perturbed`` of the median duration (§4, RQ5; specs/mining.md,
    "Nesting"). A function that calls no recorded one is left out if all but the share ε of its calls take less than
    ``LEAST_DURATION_NS``.
    """
    everything = merged([h for one in observed.observations for h in one.paths.values()])
    is_leaf = observed.probe_ns > 0 and not any(one.nested for one in observed.observations)
    if is_leaf and total(everything) and float(quantile(everything, 1.0 - options.epsilon)) < LEAST_DURATION_NS:
        note = f"{TOO_SHORT}its calls take less than 1 µs, of which recording takes a part"
        return replace(observed, observations=(), notes=(*observed.notes, note))

    def perturbed(one: Observation) -> bool:
        durations = merged(list(one.paths.values()))
        calls = total(durations)
        if calls == 0 or one.nested == 0 or observed.probe_ns <= 0:
            return False
        return one.nested * observed.probe_ns / calls > options.perturbed * float(quantile(durations, 0.5))

    kept = tuple(one for one in observed.observations if not perturbed(one))
    left_out = len(observed.observations) - len(kept)
    if left_out == 0:
        return observed
    note = (
        f"{PERTURBED}in {left_out} of {len(observed.observations)} observations the probes of calls within take more than "
        f"{100 * options.perturbed:.0f} % of the median duration; these are left out: "
        f"record it alone, with --select {observed.component}"
    )
    return replace(observed, observations=kept, notes=(*observed.notes, note))


@dataclass(frozen=True, slots=True, eq=False)
class PooledObservation:
    """An observation with enough calls, or several of one platform that have enough together."""

    platform: int
    """Place of its platform in ``Observed.platforms``."""
    start_ns: int
    """When it began."""
    end_ns: int
    """When it was closed."""
    durations: Histogram
    """Durations of all calls, whatever their path."""
    observations: tuple[Observation, ...]
    """The observations that it consists of."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedBorder:
    """A border that one pooled observation shows."""

    observation: int
    """Number of the pooled observation."""
    platform: int
    """Its platform."""
    place: float
    """The border, ns."""
    own: float
    """Share of the observation's calls below it."""
    common: float
    """Share of the calls of all observations below it."""
    sure: bool
    """Whether this observation alone is sufficient evidence."""
    slowdown: float
    """How many times as long the median call above it takes as that below, up to the next borders of the observation."""


def pool_observations(observed: Observed, fewest: int) -> list[PooledObservation]:
    """Observations in order; one that is too small is put together with the following ones on its platform.

    A pooled observation has at least ``fewest`` calls and, if the platform has so many, as many as are worth
    ``MIN_INDEPENDENT_CALLS`` independent ones.
    """
    calls = [sum(total(h) for h in one.paths.values()) for one in observed.observations]
    on_platform: dict[int, int] = {}
    for one, n in zip(observed.observations, calls, strict=True):
        on_platform[one.platform] = on_platform.get(one.platform, 0) + n
    wanted = MIN_INDEPENDENT_CALLS * autocorrelation_time([one.batches for one in observed.observations])
    pooled: list[PooledObservation] = []
    waiting: dict[int, list[int]] = {}
    for number, one in enumerate(observed.observations):
        together = waiting.setdefault(one.platform, [])
        together.append(number)
        if sum(calls[each] for each in together) >= max(fewest, min(wanted, on_platform[one.platform])):
            some = tuple(observed.observations[each] for each in waiting.pop(one.platform))
            durations = merged([h for each in some for h in each.paths.values()])
            end_ns = max(each.end_ns for each in some)
            pooled.append(PooledObservation(one.platform, some[0].start_ns, end_ns, durations, some))
    return pooled


def observed_borders(
    pooled: Sequence[PooledObservation], observed: Observed, options: MiningOptions
) -> list[ObservedBorder]:
    """Borders of each observation on its own; of borders that match, that in the widest valley (§3.2 takes the leftmost).

    A border that many observations show need not be sure in each: z of m observations adds up to √m·z (Stouffer 1949).
    """
    everything = merged([each.durations for each in pooled])
    time = autocorrelation_time([one.batches for each in pooled for one in each.observations])
    least = max(options.sure, MIN_Z / math.sqrt(max(len(pooled), 1)))

    def borders(one: PooledObservation) -> list[Array]:
        """Those that many observations may show, and those that are sure in this one."""
        if options.paper:
            return [paper_borders(one.durations)] * 2
        tick = observed.platforms[one.platform].tick if one.platform < len(observed.platforms) else 0.0
        step = max(tick, MIN_TICK_NS) if tick > 0 else 0.0
        return _borders_by_depth(one.durations, step, total(one.durations) / time, (least, MIN_Z))

    found = []
    for number, one in enumerate(pooled):
        places, sure_places = borders(one)
        own, common = cdf(one.durations, places), cdf(everything, places)
        sure = cdf(one.durations, sure_places) if places.size else own
        kept = distinct_shares(
            own, options.epsilon, None if options.paper else valley_widths(one.durations, own, options.epsilon)
        )
        for i, slowdown in zip(kept, slowdowns(one.durations, own[kept]).tolist(), strict=True):
            is_sure = bool(np.abs(sure - own[i]).min(initial=1.0) < options.epsilon)
            place, share = float(places[i]), float(own[i])
            found.append(ObservedBorder(number, one.platform, place, share, float(common[i]), is_sure, slowdown))
    return found


def slowdowns(h: Histogram, shares: Array) -> Array:
    """How many times as long the median call above a border takes as that below it, (k,), given the shares below them (k,).

    >>> slowdowns(Histogram(0, 0, np.array([10, 0, 0, 10])), np.array([0.5]))
    array([8.])
    """
    ends = np.r_[0.0, shares, 1.0]
    medians = quantile(h, (ends[1:] + ends[:-1]) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(medians[:-1] > 0, medians[1:] / medians[:-1], np.inf)


def valley_widths(h: Histogram, shares: Array, epsilon: float) -> Array:
    """Logarithm of the ratio of the durations between which a quarter of ε of the calls lies, around each share (k,)."""
    ends = np.maximum(quantile(h, np.clip([shares - epsilon / 8, shares + epsilon / 8], 0.0, 1.0)), LEAST_PLACE_NS)
    widths: Array = np.log(ends[1] / ends[0])
    return widths


def distinct_shares(shares: ArrayLike, epsilon: float, widths: ArrayLike | None = None) -> NDArray[np.intp]:
    """Places of the borders that stay, (k,), given the increasing shares F (m,) of the mass below each border.

    Borders that match the leftmost are one border, and the search goes on with those that match it no more, so matches form
    no chains. The leftmost stands for them, or the one with the largest of ``widths`` (m,): kinds of calls that lie far
    apart are divided there, where the leftmost would only divide the usual calls from those that were disturbed. A border
    with less than ε of the mass on one side is dropped (Definition 1).

    >>> distinct_shares([0.01, 0.3, 0.34, 0.38, 0.97], 0.05)
    array([1, 3])
    >>> distinct_shares([0.01, 0.3, 0.34, 0.38, 0.97], 0.05, [1, 1, 2, 1, 1])
    array([2])
    """
    share = np.asarray(shares, dtype=np.float64)
    width = np.zeros(share.size) if widths is None else np.asarray(widths, dtype=np.float64)
    inside = np.flatnonzero((share >= epsilon) & (share <= 1.0 - epsilon))
    kept: list[int] = []
    while inside.size:
        matching = inside[share[inside] - share[inside[0]] < epsilon]
        kept.append(int(matching[np.argmax(width[matching])]))
        inside = inside[share[inside] - share[kept[-1]] >= epsilon]
    return np.array(kept, dtype=np.intp)
