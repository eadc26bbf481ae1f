"""Borders that are found again and again, on each platform, and how useful further observations are.

Source: Brünink & Rosenblum, Algorithms 1 to 3, with the resolutions of specs/mining.md. Borders of single observations match
if the mass below them does: in the observation's own distribution (durations that drift, hosts of another speed) or in that
of all observations (a changing mix of the same kinds of calls).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.borders import (
    ObservedBorder,
    PooledObservation,
    observed_borders,
    pool_observations,
    slowdowns,
)
from perflaw.learn.paths.durations import cdf, clusters, merged, quantile, total
from perflaw.special import chdtri
from perflaw.types import Histogram, Observed

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StableBorders:
    """Borders of one function, over its observations."""

    borders: tuple[float, ...]
    """Borders between clusters of durations, increasing; of the platform with most calls if there are several."""
    quantiles: tuple[float, ...]
    """Share of the calls below each."""
    stable: bool
    """Whether enough observations show this partition and nothing else; never for a single observation."""
    platform_borders: Mapping[int, tuple[float, ...]] | None
    """Platform → borders there, as many as ``borders``; None on one platform."""
    observations: int
    """Number of observations with enough calls."""
    points: int
    """Number of calls."""
    matches: tuple[bool, ...] = ()
    """(observations,) whether each shows exactly these borders; in order of time."""
    notes: tuple[str, ...] = ()
    """Why nothing is claimed."""
    pooled: tuple[PooledObservation, ...] = ()
    """The observations with enough calls, in order of time."""
    shown: tuple[ObservedBorder, ...] = ()
    """The borders that each of them shows."""


@dataclass(frozen=True, slots=True, eq=False)
class CommonBorder:
    """A border that many observations show."""

    places: Mapping[int, float]
    """Platform → the border there, ns."""
    share: float
    """Share of all calls below it, those of each platform below the border there."""
    observations: int
    """Number of observations that show it."""


@dataclass(frozen=True, slots=True, eq=False)
class DurationsByPlatform:
    """The durations of all calls."""

    histograms: Mapping[int, Histogram]
    """Platform → durations there."""

    @classmethod
    def of(cls, observed: Observed) -> DurationsByPlatform:
        """Durations of all calls that were observed."""
        histograms: dict[int, list[Histogram]] = {}
        for one in observed.observations:
            histograms.setdefault(one.platform, []).extend(one.paths.values())
        return cls({platform: merged(some) for platform, some in sorted(histograms.items())})

    def share_below(self, places: Mapping[int, float]) -> float:
        """Share of all calls below a border that lies at a place of its own on each platform."""
        below = sum(float(cdf(h, places[platform])) * total(h) for platform, h in self.histograms.items())
        return below / sum(total(h) for h in self.histograms.values())


def stable_borders(observed: Observed, options: MiningOptions) -> StableBorders:
    """Borders that enough observations show, each on its own; none, with a note, if there are too few calls."""
    durations = DurationsByPlatform.of(observed)
    calls = {platform: total(h) for platform, h in durations.histograms.items()}
    points = sum(calls.values())
    pooled = pool_observations(observed, options.fewest)
    if not pooled:
        nothing = dict.fromkeys(calls, ()) if len(calls) > 1 else None
        note = f"{points} calls: too few to look for borders ({options.fewest} are needed)"
        is_explained = not points and bool(observed.notes)
        return StableBorders((), (), False, nothing, 0, points, notes=() if is_explained else (note,))
    found = observed_borders(pooled, observed, options)
    least = options.found_again * len(pooled)
    no_time = all(np.count_nonzero(each.durations.counts) == 0 for each in pooled)
    if options.paper:
        # Algorithm 1 to the letter: borders, not observations, are counted; only the merged distribution matches them.
        everything = merged([each.durations for each in pooled])
        borders = []
        for cluster in _clusters(found, "common", options.epsilon):
            if len(cluster) >= least - 1e-9:
                centre = float(quantile(everything, np.mean([one.common for one in cluster])))
                places = dict.fromkeys(durations.histograms, centre)
                shown_by = len({one.observation for one in cluster})
                borders.append(CommonBorder(places, durations.share_below(places), shown_by))
        borders = sorted(borders, key=lambda one: one.share)
    else:
        borders = _common_borders(found, durations, least, options.epsilon)
    is_busy = not options.paper and queues(observed)
    kept = borders_of_calls(borders, observed, durations, options.epsilon) if is_busy else borders
    matches = _matches(kept, found, len(pooled), durations, options, is_busy)
    notes = ["every call took no time by this clock"] if no_time else []
    if len(kept) < len(borders):
        notes.append(OF_MACHINE)
    borders = kept
    by_platform = {platform: tuple(border.places[platform] for border in borders) for platform in calls}
    return StableBorders(
        borders=by_platform[max(calls, key=lambda platform: (calls[platform], -platform))],
        quantiles=tuple(border.share for border in borders),
        stable=len(pooled) > 1 and float(np.mean(matches)) >= options.found_again,
        platform_borders=by_platform if len(by_platform) > 1 else None,
        observations=len(pooled),
        points=points,
        matches=matches,
        notes=tuple(notes),
        pooled=tuple(pooled),
        shown=tuple(found),
    )


def _common_borders(
    found: Sequence[ObservedBorder], durations: DurationsByPlatform, least: float, epsilon: float
) -> list[CommonBorder]:
    """Borders that at least so many observations show, in order; of two that contradict, the one that more show.

    A border at the same place in all observations and one at the same share of each observation's calls are often the same.
    """
    candidates = []
    for cluster in (*_clusters(found, "common", epsilon), *_clusters(found, "own", epsilon)):
        shown_by = len({one.observation for one in cluster})
        if shown_by >= least - 1e-9:
            places = {}
            for platform, h in durations.histograms.items():
                here = [one for one in cluster if one.platform == platform]
                share = float(np.mean([one.own for one in here or cluster]))
                median = float(np.median([one.place for one in here])) if here else np.nan
                # The median lies in a valley. If durations changed so that it divides the calls differently, or if
                # nothing was found on this platform, the border is the place with that share of the calls.
                is_valley = bool(here) and abs(float(cdf(h, median)) - share) < epsilon / 2
                places[platform] = amid(h, float(cdf(h, median)) if is_valley else share, epsilon)
            candidates.append(CommonBorder(places, durations.share_below(places), shown_by))

    def compatible(one: CommonBorder, other: CommonBorder) -> bool:
        """Whether two borders divide the calls differently, and are in the same order on every platform."""
        orders = {one.places[platform] < other.places[platform] for platform in one.places}
        different = all(one.places[platform] != other.places[platform] for platform in one.places)
        return different and orders == {one.share < other.share} and abs(one.share - other.share) >= epsilon

    kept: list[CommonBorder] = []
    for border in sorted(candidates, key=lambda one: -one.observations):
        inside = epsilon <= border.share <= 1.0 - epsilon
        if inside and all(compatible(border, other) for other in kept):
            kept.append(border)
    return sorted(kept, key=lambda one: one.share)


# ---- Borders between calls of one kind, some of which a busy machine slowed down.

MIN_QUEUED = 0.02
"""Share of its time that a program queued for a CPU, from which on the machine is busy."""
MAX_SLOWDOWN = 3.0
"""How many times as slow a busy machine makes calls while they run: the other half of the core, cold caches."""
CHANCE = 1e-3
"""Probability that shares that do not change are taken for such that do."""
OF_MACHINE = (
    "other programs kept the machine busy: kinds of calls that differ by less than 3 times, and whose shares change from one "
    "time to another, are taken for its speed"
)
"""The note where a border is left out."""


def queues(observed: Observed) -> bool:
    """Whether the program queued for a CPU while it was observed: the machine is busy with others."""
    span_ns: dict[str, tuple[int, int]] = {}
    for one in observed.observations:
        begin, end = span_ns.get(one.run, (one.start_ns, one.end_ns))
        span_ns[one.run] = min(begin, one.start_ns), max(end, one.end_ns)
    wall_ns = sum(end - begin for begin, end in span_ns.values())
    return sum(ns for run, ns in observed.queued_ns.items() if run in span_ns) > MIN_QUEUED * wall_ns


def borders_of_calls(
    borders: Sequence[CommonBorder], observed: Observed, durations: DurationsByPlatform, epsilon: float
) -> list[CommonBorder]:
    """The borders that divide calls of different kinds, on a busy machine; others divide calls by how fast it was.

    What other programs do changes with time. So a border is the machine's if the durations beside it differ by no more than
    a machine's speed does, and if the share of each call path's calls below it changes from one observation to the next.
    Kinds of calls whose shares stay, and kinds further apart, are told on a busy machine as well.
    """
    kept = list(borders)
    while kept:
        suspects = [
            (slowdown, number)
            for number in range(len(kept))
            if (slowdown := _slowdown(kept, number, durations)) < MAX_SLOWDOWN
            and _share_changes(kept, number, observed, epsilon)
        ]
        if not suspects:
            break
        del kept[min(suspects)[1]]
    return kept


def _slowdown(borders: Sequence[CommonBorder], number: int, durations: DurationsByPlatform) -> float:
    """How many times as long the median call above a border takes as that below it, on the platform with the largest."""
    by_platform = (
        slowdowns(h, cdf(h, [one.places[platform] for one in borders])) for platform, h in durations.histograms.items()
    )
    return max(float(each[number]) for each in by_platform)


def _share_changes(borders: Sequence[CommonBorder], number: int, observed: Observed, epsilon: float) -> bool:
    """Whether the shares of calls below a border, of those up to the next borders, change by more than ε and than by chance.

    Each path's are compared from one observation to the next, so that a mix of paths that changes counts for nothing. The
    variance of shares beyond chance is that of moments (McCullagh & Nelder 1989, §4.5).
    """
    tables: dict[tuple[int, int], list[Array]] = {}
    for one in observed.observations:
        places = [border.places[one.platform] for border in borders]
        for path, h in one.paths.items():
            tables.setdefault((one.platform, path), []).append(clusters(h, places)[number : number + 2])
    statistic, freedom, beyond, weight = 0.0, 0, 0.0, 0.0
    for rows in tables.values():
        table = np.array(rows)
        calls = table.sum(axis=1)
        share = table[:, 0].sum() / max(calls.sum(), 1.0)
        chance = calls * share * (1.0 - share)
        squares = (table[:, 0] - calls * share) ** 2
        seen = chance > 0
        statistic += float((squares[seen] / chance[seen]).sum())
        freedom += max(int(seen.sum()) - 1, 0)
        beyond += float((squares - chance).sum())
        weight += float((calls**2).sum())
    return freedom > 0 and statistic > chdtri(freedom, CHANCE) and beyond > epsilon**2 * weight


def amid(h: Histogram, share: float, epsilon: float) -> float:
    """The middle, on the logarithm, of the durations that divide the calls nearly so: all between which a quarter of ε lies.

    Where kinds of calls lie far apart, a border divides them anywhere in between. Amid them it still does so when the machine
    is slower or quicker, which makes it the best one to compare new calls with.
    """
    low, high = quantile(h, np.clip([share - epsilon / 8, share + epsilon / 8], 0.0, 1.0)).tolist()
    return math.sqrt(low * high) if 0.0 < low < high else float(quantile(h, share))


def _clusters(found: Sequence[ObservedBorder], share: str, epsilon: float) -> list[list[ObservedBorder]]:
    """Borders whose shares (``own`` or ``common``) lie close together, by mean shift (Algorithm 1)."""
    number = mean_shift(np.array([getattr(one, share) for one in found], dtype=np.float64), epsilon)
    return [[found[int(i)] for i in np.flatnonzero(number == k)] for k in range(int(number.max(initial=-1)) + 1)]


def _matches(
    borders: Sequence[CommonBorder],
    found: Sequence[ObservedBorder],
    observations: int,
    durations: DurationsByPlatform,
    options: MiningOptions,
    is_busy: bool,
) -> tuple[bool, ...]:
    """Whether the borders match those of each observation, (observations,), and these match the borders (Definition 4).

    A border that an observation hardly shows is sufficient to match, but does not contradict; nor does one that may be
    the machine's where that ``is_busy``.
    """
    # (found, borders): two borders are near each other if few of all calls of the platform lie between them, or if the
    # shares of the calls below each differ little.
    is_near = np.zeros((len(found), len(borders)), dtype=bool)
    if not options.paper and is_near.size:
        own = np.array([one.own for one in found])
        is_near |= np.abs(own[:, None] - [border.share for border in borders]) < options.epsilon
    for platform, h in durations.histograms.items():
        here = [i for i, one in enumerate(found) if one.platform == platform]
        shown = cdf(h, [found[i].place for i in here])
        common = cdf(h, [border.places[platform] for border in borders])
        is_near[here] |= np.abs(shown[:, None] - common) < options.epsilon
    matches = []
    for number in range(observations):
        here = [i for i, one in enumerate(found) if one.observation == number]
        sure = [i for i in here if found[i].sure and not (is_busy and found[i].slowdown < MAX_SLOWDOWN)]
        matches.append(bool(is_near[sure].any(axis=1).all() and is_near[here].any(axis=0).all()))
    return tuple(matches)


# ---- How useful further observations would be (Algorithms 2 and 3).

RECENT = 10
"""Number of the last observations whose common borders all are compared with (Algorithm 3)."""


Span = tuple[int, int]
"""Begin and end of a stretch of time, ns since 1970."""


def utility(observed: Observed, stable: StableBorders, now_ns: int, options: MiningOptions | None = None) -> float:
    """min(1, (now − t_end) / (t_end − t_start)) of the time up to now in which all observations match, 0 to 1.

    It is 1 without observations, and if the newest shows other borders than the last ten have in common.
    ``stable`` are the borders of these observations.
    """
    return utility_after(matching_span(observed, stable, options or MiningOptions()), now_ns)


def utility_after(span: Span | None, now_ns: int) -> float:
    """The utility some time after the span in which all observations match.

    >>> utility_after((0, 40), 50), utility_after((0, 40), 90), utility_after(None, 90)
    (0.25, 1.0, 1.0)
    """
    start, end = span or (0, 0)
    return min(1.0, max(now_ns - end, 0) / (end - start)) if end > start else 1.0


def matching_span(observed: Observed, stable: StableBorders, options: MiningOptions) -> Span | None:
    """The time up to the newest observation in which all match (Algorithm 2); None if the newest does not match, or is none."""
    pooled = stable.pooled
    if len(pooled) <= RECENT:
        matches = stable.matches
    else:
        last = tuple(one for each in pooled[-RECENT:] for one in each.observations)
        recent = stable_borders(replace(observed, observations=last), options)
        durations = DurationsByPlatform.of(observed)
        known = recent.platform_borders or {pooled[-1].platform: recent.borders}
        borders = []
        for k, share in enumerate(recent.quantiles):
            # On platforms that the last observations do not come from, the border lies at the same share of the calls.
            places = {
                platform: known[platform][k] if platform in known else float(quantile(h, share))
                for platform, h in durations.histograms.items()
            }
            borders.append(CommonBorder(places, share, RECENT))
        is_busy = not options.paper and queues(observed)
        matches = _matches(borders, stable.shown, len(pooled), durations, options, is_busy)
    if not matches or not matches[-1] or len(matches) != len(pooled):
        return None
    # The earliest observation from which on all match (Algorithm 2).
    first = next((place + 1 for place in reversed(range(len(matches))) if not matches[place]), 0)
    return pooled[first].start_ns, pooled[-1].end_ns


# ---- Mean shift on a line, with a flat kernel (Comaniciu & Meer, IEEE PAMI 24, 2002).

MAX_SHIFTS = 300
"""Number of steps after which every point has reached its summit; it usually takes fewer than ten."""


def mean_shift(x: Array, bandwidth: float) -> NDArray[np.intp]:
    """Number of the cluster of every point, (n,), numbered from the left.

    Every point climbs to the mean of the points within the bandwidth, again and again. Of summits within the bandwidth of
    each other the one with the most points around it stays; a point belongs to the nearest summit that stays.

    >>> mean_shift(np.array([0.3, 0.7, 0.31, 0.29, 0.72]), 0.05)
    array([0, 1, 0, 0, 1])
    """
    if x.size == 0:
        return np.zeros(0, dtype=np.intp)
    line = np.sort(x)
    sums, summits = np.r_[0.0, np.cumsum(line)], line
    first, last = _within(line, summits, bandwidth)
    for _ in range(MAX_SHIFTS):
        means = (sums[last] - sums[first]) / (last - first)
        if np.abs(means - summits).max() <= 1e-3 * bandwidth:
            break
        summits = means
        first, last = _within(line, summits, bandwidth)
    stay: list[float] = []
    for place in np.lexsort((summits, -(last - first))):
        if all(abs(summits[place] - other) > bandwidth for other in stay):
            stay.append(float(summits[place]))
    kept = np.sort(stay)
    return np.asarray(np.searchsorted((kept[1:] + kept[:-1]) / 2, x, side="right"))


def _within(line: Array, centres: Array, bandwidth: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First point within the bandwidth of each centre, and the one after the last, (n,) each; at least one point."""
    first = np.searchsorted(line, centres - bandwidth, side="left")
    last = np.searchsorted(line, centres + bandwidth, side="right")
    first = np.minimum(first, line.size - 1)
    return first, np.maximum(last, first + 1)
