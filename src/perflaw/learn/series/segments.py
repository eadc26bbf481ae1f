"""Partitions of a series into segments: exact fits of their laws with one σ, intervals, and breakpoints."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import LEVEL
from perflaw.laws.catalogue import CONSTANT
from perflaw.learn.series.candidates import BARTLETT, EXTRA_COST, MODELS, padded_batch, slack
from perflaw.learn.series.describe import Described, alternatives, describe_model, slopes_of
from perflaw.learn.series.fit import Fit, fit
from perflaw.learn.series.model import FittedModel, covariance_between_runs, moulton, residual_and_gradient
from perflaw.learn.series.partition import SortedSeries, splits
from perflaw.learn.series.series import Array, Options, Rows, Series
from perflaw.special import stdtrit
from perflaw.types import Breakpoint, Law

LIKELIHOOD = round(-2.0 * math.log(1.0 - math.sqrt(LEVEL)), 2)
"""Quantile of the likelihood ratio of a breakpoint's place at the confidence level (Hansen 2000, table 1)."""
CROSSING = 64
"""Number of points between two sizes at which regimes are compared to find where they cross."""
SHORT = 24
"""Length to which shorter segments are padded."""
ROUNDS = 3
"""Rounds of choosing laws and estimating σ² from them."""
NEW_FAMILY = 2.0 * math.log(3.0)
"""Deviance that a segment's law must gain to be of another family than its neighbour's.

A short piece over a narrow range fits every family: without this one of some three that fit it won by chance.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A series with the places at which its feature is split."""

    series: int
    """Place of the series in the batch."""
    feature: int
    """Place of the feature."""
    log: bool
    """Noise is multiplicative."""
    order: NDArray[np.intp]
    """Rows sorted by the feature, (n,)."""
    cuts: tuple[int, ...]
    """Places in that order where regimes change, increasing."""
    smooth: float
    """Deviance of the best smooth law, which it has to beat."""

    @property
    def ends(self) -> list[tuple[int, int]]:
        """First and last place of every segment."""
        return list(pairwise([0, *self.cuts, self.order.size]))


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The rows of one regime."""

    row: Rows
    """The series."""
    feature: int
    """Place of the feature that decides."""
    members: NDArray[np.intp]
    """Rows of the segment in the series."""
    cell: int
    """Place of the segment in the fits."""

    @property
    def data(self) -> tuple[Array, Array, Array]:
        """x, y and log y of the segment, (k,) each."""
        return self.row.x[self.feature][self.members], self.row.y[self.members], self.row.log_y[self.members]

    @property
    def ends(self) -> Array:
        """Smallest and largest x, (2,)."""
        x = self.data[0]
        return np.array([x.min(), x.max()])


@dataclass(frozen=True, slots=True, eq=False)
class FittedPartition:
    """A partition with the laws of its segments."""

    partition: Partition
    """The partition."""
    segments: tuple[Segment, ...]
    """Its segments in order."""
    plausible: tuple[tuple[tuple[int, float], ...], ...]
    """Law of each segment and those that fit equally well, the chosen one first: place in the fits, score difference."""
    rss: float
    """Residual sum of squares on the noise's scale."""
    parameters: int
    """Number of parameters of all segments' laws."""
    variance: float
    """σ², shared by the segments."""
    freedom: float
    """Degrees of freedom of σ²."""
    effective: float
    """Effective number of independent rows of the series."""
    floor: float
    """Smallest credible σ."""
    laws: tuple[tuple[Described, ...], ...] = ()
    """Law of each segment and those that fit equally well, in the order of ``plausible``."""

    @property
    def row(self) -> Rows:
        """The series."""
        return self.segments[0].row

    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Every breakpoint with its interval: places whose likelihood ratio is small, the other breakpoints held.

        The interval reaches from the last row surely before the breakpoint to the first row surely after it (Hansen
        2000). The breakpoint is where its regimes meet between the sizes beside it, else the middle, geometric if
        possible.
        """
        out, part, row = [], self.partition, self.row
        x = row.x[part.feature]
        for i, cut in enumerate(part.cuts):
            (first, _), (_, last) = part.ends[i : i + 2]
            members, place = part.order[first:last], cut - first
            left, right = (laws[0].fitted for laws in self.laws[i : i + 2])
            parameters = min(max(len(left.model.places) + len(right.model.places), 2), 4)
            rows = SortedSeries(*(column[members][None] for column in (x, row.y, row.log_y, row.w)))
            rss = splits(rows, part.log)[parameters][0]
            near = np.flatnonzero(rss - rss[place] <= LIKELIHOOD * self.variance)
            low, high = min(near.min(initial=place), place) - 1, max(near.max(initial=place), place)

            below, above = float(x[part.order[cut - 1]]), float(x[part.order[cut]])
            value, grid = (below + above) / 2.0, np.linspace(below, above, CROSSING)
            if below > 0:
                value, grid = float(np.sqrt(below * above)), np.geomspace(below, above, CROSSING)
            difference = left.mean(grid) - right.mean(grid)
            crossed = np.flatnonzero(difference[:-1] * difference[1:] <= 0)
            inner = crossed[(crossed > 0) & (crossed < CROSSING - 2)]
            if inner.size:
                value = float((grid[inner[0]] + grid[inner[0] + 1]) / 2.0)
            out.append(Breakpoint(row.names[part.feature], value, float(x[members[low]]), float(x[members[high]])))
        return tuple(out)

    def segment_laws(self) -> tuple[Law, ...]:
        """Every regime as a law of its own."""
        out, row, name = [], self.row, self.row.names[self.partition.feature]
        for segment, laws in zip(self.segments, self.laws, strict=True):
            x, y, _ = segment.data
            law = laws[0].law(
                Series(row.series.name, y, {name: x}),
                int(y.size if row.clusters is None else np.unique(row.clusters[segment.members]).size),
                slopes=slopes_of(name, laws),
                verdict=("law" if laws[0].feature else "none", ""),
                r2=None,
                alternatives=alternatives(laws, np.inf),
            )
            out.append(law)
        return tuple(out)


def fit_partitions(rows: Sequence[Rows], parts: Sequence[Partition], options: Options) -> list[FittedPartition]:
    """Fit the laws of all segments of partitions; ``rows`` are the batch's series."""
    out: dict[int, FittedPartition] = {}
    groups: dict[tuple[bool, int], list[int]] = defaultdict(list)
    for i, part in enumerate(parts):
        # Sums over a multiple of 8 rows, up to 128, do not depend on zeros at their end.
        longest = max(b - a for a, b in part.ends)
        groups[part.log, SHORT if longest <= SHORT else -(-longest // 8) * 8].append(i)
    for (log, length), members in groups.items():
        found = _fit_padded(rows, [parts[i] for i in members], log, length, options)
        out.update(zip(members, found, strict=True))
    return [out[i] for i in range(len(parts))]


def _fit_padded(
    rows: Sequence[Rows], parts: Sequence[Partition], log: bool, length: int, options: Options
) -> list[FittedPartition]:
    """Fit partitions under one noise, whose segments are padded to one length."""
    models = [model for model in MODELS if model.noise.log is log and (not model.intercept or model.family.piece)]
    cells = [(part, part.order[a:b]) for part in parts for a, b in part.ends]
    batch = padded_batch([(rows[part.series], part.feature, members) for part, members in cells], length)
    fits = fit(models, batch)
    flat = [Segment(rows[part.series], part.feature, members, cell) for cell, (part, members) in enumerate(cells)]
    out, first = [], 0
    for part in parts:
        last = first + len(part.ends)
        out.append(_choose_laws(part, flat[first:last], fits, options))
        first = last
    # All segments of a model are described at once.
    wanted: dict[int, list[tuple[Segment, FittedPartition, float]]] = defaultdict(list)
    for fitted in out:
        for segment, plausible in zip(fitted.segments, fitted.plausible, strict=True):
            for m, delta in plausible:
                wanted[m].append((segment, fitted, delta))
    described: dict[tuple[int, int], Described] = {}
    for m, places in wanted.items():
        batch_of_model = _with_uncertainty(fits[m], [(segment, fitted) for segment, fitted, _ in places], options)
        constant = models[m].family is CONSTANT
        names = ["" if constant else segment.row.names[segment.feature] for segment, _, _ in places]
        laws = describe_model(names, batch_of_model, [delta for _, _, delta in places])
        described.update({(segment.cell, m): law for (segment, _, _), law in zip(places, laws, strict=True)})
    return [
        replace(
            fitted,
            laws=tuple(
                tuple(described[segment.cell, m] for m, _ in plausible)
                for segment, plausible in zip(fitted.segments, fitted.plausible, strict=True)
            ),
        )
        for fitted in out
    ]


def _choose_laws(
    part: Partition, segments: Sequence[Segment], fits: Sequence[Fit], options: Options
) -> FittedPartition:
    """Choose every segment's law given σ² of all, which then is that of the choice; a few rounds settle it."""
    row, feature = segments[0].row, part.feature
    n = float(row.y.size)
    count = np.array([len(one.model.places) for one in fits])
    rss = np.array(
        [[one.rss[s.cell] if np.isfinite(one.deviance[s.cell]) else np.inf for one in fits] for s in segments]
    )
    sizes = np.array([np.unique(segment.data[0]).size for segment in segments])
    rss = np.where(count < sizes[:, None], rss, np.inf)
    names = np.array([one.model.family.name for one in fits])
    equal = np.array([np.ptp(segment.data[1]) == 0 for segment in segments])
    rss = np.where(equal[:, None] & (names != CONSTANT.name), np.inf, rss)  # equal responses are constant
    floor = max(float(fits[0].floor[segment.cell]) for segment in segments) ** 2
    bic = count * np.log(n) + np.array([one.model.family.surprise for one in fits])
    price, chosen = bic + count * EXTRA_COST, rss.argmin(axis=-1)
    change = np.where(names[:, None] == names, 0.0, NEW_FAMILY)
    for _ in range(ROUNDS):
        total = float(np.take_along_axis(rss, chosen[:, None], axis=-1).sum())
        freedom = max(n - float(count[chosen].sum()) - len(part.cuts), 1.0)
        variance = max(total / freedom, floor)
        best, chosen = chosen, _least_path(np.maximum(rss, floor) / variance + price, change)

    effective = row.effective
    if row.clusters is not None:
        residual = np.zeros(row.y.size)
        for segment, m in zip(segments, best, strict=True):
            theta = fits[m].theta[segment.cell]
            residual[segment.members] = residual_and_gradient(fits[m].model, segment.data, theta, segment.ends)[0]
        effective = max(effective / moulton(residual, np.asarray(row.x[feature]), row.clusters), 1.0)

    plausible = []
    for m, own in zip(best.tolist(), rss, strict=True):
        worse = np.log1p(np.maximum(own - own[m], -total) / (total + n * floor))
        difference = max(effective - BARTLETT, 1.0) * worse + np.minimum(price - price[m], bic - bic[m])
        difference -= slack(int(effective))
        if total <= n * floor:
            # Laws with more parameters fit as perfectly: that is no doubt.
            difference = np.where(bic > bic[m], np.inf, difference)
        difference[m] = 0.0
        near = [(int(k), max(float(difference[k]), 0.0)) for k in np.flatnonzero(difference < options.delta)]
        plausible.append(tuple(sorted(near, key=lambda law: (law[0] != m, law[1]))))
    parameters = int(count[best].sum())
    floor = float(np.sqrt(floor))
    return FittedPartition(
        part, tuple(segments), tuple(plausible), total, parameters, variance, freedom, effective, floor
    )


def _least_path(scores: Array, change: Array) -> NDArray[np.intp]:
    """The column of each row, (S,), for which scores (S, K) and changes from row to row (K, K) have the least sum.

    It is found by dynamic programming.
    """
    before = np.zeros(scores.shape, dtype=np.intp)
    total = scores[0]
    for i, own in enumerate(scores[1:], 1):
        whole = total[:, None] + change
        before[i] = whole.argmin(axis=0)
        total = whole.min(axis=0) + own
    path = [int(total.argmin())]
    for back in before[:0:-1]:
        path.append(int(back[path[-1]]))
    return np.array(path[::-1], dtype=np.intp)


def _with_uncertainty(found: Fit, places: Sequence[tuple[Segment, FittedPartition]], options: Options) -> FittedModel:
    """One model fitted to some segments of partitions, with its uncertainty."""
    model, cells = found.model, np.array([segment.cell for segment, _ in places])
    variance = np.array([fitted.variance for _, fitted in places])
    freedom = np.array([fitted.freedom for _, fitted in places])
    scale = variance * [segment.row.y.size / fitted.effective for segment, fitted in places]
    covariance = found.covariance[cells] * scale[:, None, None]
    ends = np.array([segment.ends for segment, _ in places])
    for i, (segment, _) in enumerate(places):
        row, cell = segment.row, segment.cell
        if row.clusters is None:
            continue
        run = np.unique(row.clusters[segment.members], return_inverse=True)[1].reshape(-1)
        freedom[i] = max(float(run.max()), 1.0)
        if run.max() > 0:  # else the segment lies in one run
            theta, w = found.theta[cell], row.w[segment.members]
            between = covariance_between_runs(model, segment.data, theta, segment.ends, w, run)
            covariance[i] = between + found.covariance[cell] * float(found.floor[cell]) ** 2
    hidden = [segment.row.within[model.noise.log] for segment, _ in places]
    quantile = stdtrit(freedom, 0.5 + options.confidence / 2.0)
    return FittedModel(
        model, found.theta[cells], covariance, ends, variance + hidden, 2.0 * variance**2 / freedom, quantile
    )
