"""Borders that observations have in common: clusters of those that match, and where they lie on each platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.histograms import cdf, merged, quantile, total
from perflaw.learn.paths.looks import Found, Look
from perflaw.types import Histogram, Observed

# ---- Mean shift on a line, with a flat kernel (Comaniciu & Meer, IEEE PAMI 24, 2002): numbers that lie close
# together.

MOST_STEPS = 300
"""After so many a point has gone where it goes; it usually takes fewer than ten."""


def mean_shift(x: Array, bandwidth: float) -> NDArray[np.intp]:
    """Number of the cluster of every point, (n,), numbered from the left.

    Every point climbs to the mean of the points within the bandwidth of it, again and again. Of summits within the
    bandwidth of each other the one with the most points around it stays; a point belongs to the nearest that stays.

    >>> mean_shift(np.array([0.3, 0.7, 0.31, 0.29, 0.72]), 0.05)
    array([0, 1, 0, 0, 1])
    """
    if x.size == 0:
        return np.zeros(0, dtype=np.intp)
    line = np.sort(x)
    summits, crowd = _summits(line, bandwidth)
    stay: list[float] = []
    for place in np.lexsort((summits, -crowd)):
        if all(abs(summits[place] - other) > bandwidth for other in stay):
            stay.append(float(summits[place]))
    kept = np.sort(stay)
    return np.asarray(np.searchsorted((kept[1:] + kept[:-1]) / 2, x, side="right"))


def _summits(line: Array, bandwidth: float) -> tuple[Array, NDArray[np.intp]]:
    """Where points in order climb to, and how many points lie around there, (n,) each."""
    sums, here = np.r_[0.0, np.cumsum(line)], line
    for _ in range(MOST_STEPS):
        first, last = _around(line, here, bandwidth)
        there = (sums[last] - sums[first]) / (last - first)
        if np.abs(there - here).max() <= 1e-3 * bandwidth:
            break
        here = there
    first, last = _around(line, here, bandwidth)
    return here, last - first


def _around(line: Array, here: Array, bandwidth: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First point within the bandwidth and the one after the last, (n,) each; never none, whatever rounding does."""
    first = np.searchsorted(line, here - bandwidth, side="left")
    last = np.searchsorted(line, here + bandwidth, side="right")
    first = np.minimum(first, line.size - 1)
    return first, np.maximum(last, first + 1)


Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Border:
    """One border that many observations show."""

    places: Mapping[int, float]
    """Platform → the border there, ns."""
    share: float
    """Share of all calls below it, those of each platform below the border there."""
    looks: int
    """Observations that show it."""


@dataclass(frozen=True, slots=True, eq=False)
class Durations:
    """All calls, by platform."""

    of: Mapping[int, Histogram]
    """Platform → durations there."""

    @property
    def main(self) -> int:
        """The platform of most calls."""
        return max(self.of, key=lambda platform: (total(self.of[platform]), -platform))

    def share(self, places: Mapping[int, float]) -> float:
        """Share of all calls below a border that lies at a place of its own on each platform."""
        below = sum(float(cdf(h, places[platform])) * total(h) for platform, h in self.of.items())
        return below / sum(total(h) for h in self.of.values())

    def below(self, platform: int, place: float) -> float:
        """Share of a platform's calls below a place."""
        return float(cdf(self.of[platform], place))


def durations_of(observed: Observed) -> Durations:
    """Durations of all calls that were observed."""
    each: dict[int, list[Histogram]] = {}
    for one in observed.observations:
        each.setdefault(one.platform, []).extend(one.paths.values())
    return Durations({platform: merged(some) for platform, some in sorted(each.items())})


def common_borders(found: Sequence[Found], durations: Durations, least: float, epsilon: float) -> list[Border]:
    """Borders that at least so many observations show, in order; those that most show decide where two contradict.

    A border that is found at one place and one that is found at one share of each observation's calls are often the same.
    """
    clusters = [some for by in ("common", "own") for some in _clusters(found, by, epsilon)]
    several = [
        _border(some, durations, epsilon) for some in clusters if len({one.look for one in some}) >= least - 1e-9
    ]
    kept: list[Border] = []
    for border in sorted(several, key=lambda one: -one.looks):
        inside = epsilon <= border.share <= 1.0 - epsilon
        if inside and all(_beside(border, other, epsilon) for other in kept):
            kept.append(border)
    return sorted(kept, key=lambda one: one.share)


def paper_common_borders(
    found: Sequence[Found], looks: Sequence[Look], durations: Durations, least: float, epsilon: float
) -> list[Border]:
    """Algorithm 1 to the letter: borders, not observations, are counted, and only the merged distribution matches them."""
    everything = merged([look.durations for look in looks])
    borders = []
    for some in _clusters(found, "common", epsilon):
        if len(some) >= least - 1e-9:
            centre = float(quantile(everything, np.mean([one.common for one in some])))
            places = dict.fromkeys(durations.of, centre)
            borders.append(Border(places, durations.share(places), len({one.look for one in some})))
    return sorted(borders, key=lambda one: one.share)


def _clusters(found: Sequence[Found], by: str, epsilon: float) -> list[list[Found]]:
    """Those whose shares lie close together, by mean shift (Algorithm 1)."""
    number = mean_shift(np.array([getattr(one, by) for one in found], dtype=np.float64), epsilon)
    return [[found[int(i)] for i in np.flatnonzero(number == k)] for k in range(int(number.max(initial=-1)) + 1)]


def _border(some: Sequence[Found], durations: Durations, epsilon: float) -> Border:
    """Where it lies on each platform, by what is found there, or by all where nothing is."""
    places = {}
    for platform, h in durations.of.items():
        here = [one for one in some if one.platform == platform]
        places[platform] = _place(here, h, epsilon) if here else float(quantile(h, np.mean([one.own for one in some])))
    return Border(places, durations.share(places), len({one.look for one in some}))


def _place(here: Sequence[Found], h: Histogram, epsilon: float) -> float:
    """The median, amid a valley; where durations changed so that it divides the calls otherwise, the place that does not."""
    middle, share = float(np.median([one.place for one in here])), float(np.mean([one.own for one in here]))
    return middle if abs(float(cdf(h, middle)) - share) < epsilon / 2 else float(quantile(h, share))


def _beside(one: Border, other: Border, epsilon: float) -> bool:
    """Whether they divide the calls differently, and stand in one order on every platform."""
    orders = {one.places[platform] < other.places[platform] for platform in one.places}
    different = all(one.places[platform] != other.places[platform] for platform in one.places)
    return different and orders == {one.share < other.share} and abs(one.share - other.share) >= epsilon
