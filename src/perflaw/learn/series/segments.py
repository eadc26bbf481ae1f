"""Laws of the segments of a partition: exact fits of the families, σ shared by all segments, intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.laws.catalogue import CONSTANT
from perflaw.learn.series.band import Fitted, cluster_covariance, moulton
from perflaw.learn.series.candidates import BARTLETT, LEAST, MODELS, residual_of
from perflaw.learn.series.choose import slack
from perflaw.learn.series.describe import Described, described
from perflaw.learn.series.fit import Fit, fit
from perflaw.learn.series.model import Model
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.series import Array, Options
from perflaw.learn.series.stacks import Batch

SHORT = 24
"""Length that segments of up to so many rows are padded to."""

ROUNDS = 3
"""Rounds of choosing laws and estimating σ² from them."""

Cell = tuple[Fit, int, NDArray[np.intp]]
"""A law's fits, the segment's place in them, its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A series with the places its feature is split at."""

    series: int
    """Its place in the batch."""
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
        places = [0, *self.cuts, self.order.size]
        return list(pairwise(places))


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment with its laws."""

    rows: NDArray[np.intp]
    """Its rows in the series."""
    laws: tuple[Described, ...]
    """Its law, then those not told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """A partition fitted."""

    segments: tuple[Segment, ...]
    """Its segments in order."""
    rss: float
    """Residual sum of squares on the noise's scale."""
    parameters: int
    """Parameters of all segments' laws."""
    variance: float
    """σ², shared."""
    worth: float
    """Independent rows the series is worth."""
    floor: float
    """Smallest credible σ."""


@dataclass(frozen=True, slots=True, eq=False)
class _Share:
    """What the segments of a partition share."""

    near: dict[int, list[tuple[int, float]]]
    """Segment's place among all → its law and those not told apart, each with its score's difference."""
    rss: float
    parameters: int
    variance: float
    freedom: float
    worth: float
    floor: float


def fit_partitions(rows: Sequence[Rows], parts: Sequence[Partition], options: Options) -> list[Fitting]:
    """Fit the laws of all segments of partitions; ``rows`` are the batch's series."""
    out: dict[int, Fitting] = {}
    groups: dict[tuple[bool, int], list[int]] = defaultdict(list)
    for i, part in enumerate(parts):
        groups[part.log, _length(part)].append(i)
    for (log, length), members in groups.items():
        found = _fit(rows, [parts[i] for i in members], (log, length), options)
        out.update(zip(members, found, strict=True))
    return [out[i] for i in range(len(parts))]


def _length(part: Partition) -> int:
    """Length its segments are padded to: sums over a multiple of 8, up to 128, do not depend on zeros at their end."""
    longest = max(b - a for a, b in part.ends)
    return SHORT if longest <= SHORT else -(-longest // 8) * 8


def _fit(rows: Sequence[Rows], parts: Sequence[Partition], kind: tuple[bool, int], options: Options) -> list[Fitting]:
    """Fit partitions of one noise and length."""
    log, length = kind
    models = [model for model in MODELS if model.noise.log is log and _tried(model)]
    flat = [(part, part.order[a:b]) for part in parts for a, b in part.ends]
    batch = _batch([(rows[part.series], part.feature, some) for part, some in flat], length)
    fits = fit(models, batch)
    last = np.cumsum([len(part.ends) for part in parts]).tolist()
    shares = []
    for part, end in zip(parts, last, strict=True):
        cells = [(place, flat[place][1]) for place in range(end - len(part.ends), end)]
        shares.append(_share(rows[part.series], part, fits, cells, options))
    laws = _laws(rows, flat, fits, shares, options)
    return [
        Fitting(
            tuple(Segment(flat[p][1], laws[p]) for p in share.near),
            share.rss,
            share.parameters,
            share.variance,
            share.worth,
            share.floor,
        )
        for share in shares
    ]


def _laws(
    rows: Sequence[Rows],
    flat: Sequence[tuple[Partition, NDArray[np.intp]]],
    fits: Sequence[Fit],
    shares: Sequence[_Share],
    options: Options,
) -> dict[int, tuple[Described, ...]]:
    """Laws of all segments, described model by model."""
    wanted: dict[int, list[tuple[int, int, float, _Share]]] = defaultdict(list)
    for share in shares:
        for place, near in share.near.items():
            for rank, (m, delta) in enumerate(near):
                wanted[m].append((place, rank, delta, share))
    out: dict[int, list[tuple[int, Described]]] = defaultdict(list)
    for m, cells in wanted.items():
        several = _several(rows, flat, fits[m], [(cell[0], cell[3]) for cell in cells], options)
        constant = fits[m].model.family is CONSTANT
        names = ["" if constant else _name(rows, flat[place][0]) for place, _, _, _ in cells]
        for cell, law in zip(cells, described(names, several, [cell[2] for cell in cells]), strict=True):
            out[cell[0]].append((cell[1], law))
    return {place: tuple(law for _, law in sorted(laws, key=lambda one: one[0])) for place, laws in out.items()}


def _name(rows: Sequence[Rows], part: Partition) -> str:
    return rows[part.series].names[part.feature]


def _tried(model: Model) -> bool:
    return not model.intercept or model.family.piece


def _batch(cells: Sequence[tuple[Rows, int, NDArray[np.intp]]], length: int) -> Batch:
    """One cell a segment, padded with its first row at weight 0."""
    x, y, log_y, w = (np.zeros((len(cells), length)) for _ in range(4))
    for i, (row, f, some) in enumerate(cells):
        padded = np.concatenate([some, np.full(length - some.size, some[0])])
        x[i], y[i], log_y[i] = row.x[f][padded], row.y[padded], row.log_y[padded]
        w[i, : some.size] = row.w[some]
    quantum = np.array([row.series.quantum for row, _, _ in cells])
    return Batch(x, y, log_y, w, quantum, np.array([row.positive for row, _, _ in cells]))


def _share(
    row: Rows, part: Partition, fits: Sequence[Fit], cells: Sequence[tuple[int, NDArray[np.intp]]], options: Options
) -> _Share:
    """Choose every segment's law given σ² of all, which is then that of the choice; a few rounds settle it."""
    n = float(row.y.size)
    count = np.array([len(f.model.columns) for f in fits])
    rss = np.array([[f.rss[place] if np.isfinite(f.deviance[place]) else np.inf for f in fits] for place, _ in cells])
    sizes = np.array([np.unique(row.x[part.feature][some]).size for _, some in cells])
    rss = np.where(count < sizes[:, None], rss, np.inf)
    floor = max(float(fits[0].floor[place]) for place, _ in cells) ** 2
    plain = count * np.log(n) + np.array([f.model.family.surprise for f in fits])
    price, chosen = plain + count * LEAST, rss.argmin(axis=-1)
    for _ in range(ROUNDS):
        total = float(np.take_along_axis(rss, chosen[:, None], axis=-1).sum())
        freedom = max(n - float(count[chosen].sum()) - len(part.cuts), 1.0)
        variance = max(total / freedom, floor)
        best, chosen = chosen, (np.maximum(rss, floor) / variance + price).argmin(axis=-1)
    worth = _worth(row, part, [(fits[m], *cell) for m, cell in zip(best, cells, strict=True)])
    totals = (total, n * floor, worth)
    near = {place: _near(rss[i], int(best[i]), totals, price, plain, options) for i, (place, _) in enumerate(cells)}
    return _Share(near, total, int(count[best].sum()), variance, freedom, worth, float(np.sqrt(floor)))


def _near(
    rss: Array, chosen: int, totals: tuple[float, float, float], price: Array, plain: Array, options: Options
) -> list[tuple[int, float]]:
    """Laws of one segment that the data cannot tell from the chosen one, which comes first."""
    total, floor, worth = totals
    deviance = max(worth - BARTLETT, 1.0) * np.log1p(np.maximum(rss - rss[chosen], -total) / (total + floor))
    difference = deviance + np.minimum(price - price[chosen], plain - plain[chosen]) - slack(int(worth))
    if total <= floor:
        # Laws with more parameters fit as perfectly: that is no doubt.
        difference = np.where(plain > plain[chosen], np.inf, difference)
    difference[chosen] = 0.0
    near = [(int(m), max(float(difference[m]), 0.0)) for m in np.flatnonzero(difference < options.delta)]
    return sorted(near, key=lambda law: (law[0] != chosen, law[1]))


def _residual(row: Rows, part: Partition, cell: Cell) -> tuple[Array, Array]:
    fit_, place, some = cell
    x = row.x[part.feature][some]
    return residual_of(fit_.model, (x, row.y[some], row.log_y[some]), fit_.theta[place], _ends(x))


def _ends(x: Array) -> Array:
    return np.array([x.min(), x.max()])


def _worth(row: Rows, part: Partition, chosen: Sequence[Cell]) -> float:
    """Independent rows the series is worth, by Moulton's factor where rows share runs."""
    if row.clusters is None:
        return row.information
    residual = np.zeros(row.y.size)
    for cell in chosen:
        residual[cell[2]] = _residual(row, part, cell)[0]
    return max(row.information / moulton(residual, np.asarray(row.x[part.feature]), row.clusters), 1.0)


def _several(
    rows: Sequence[Rows],
    flat: Sequence[tuple[Partition, NDArray[np.intp]]],
    fit_: Fit,
    cells: Sequence[tuple[int, _Share]],
    options: Options,
) -> Fitted:
    """One model in some segments with its uncertainty."""
    places = np.array([place for place, _ in cells])
    variance = np.array([share.variance for _, share in cells])
    freedom = np.array([share.freedom for _, share in cells])
    series = [rows[flat[place][0].series] for place in places]
    scale = variance * [row.y.size / share.worth for row, (_, share) in zip(series, cells, strict=True)]
    covariance = fit_.covariance[places] * scale[:, None, None]
    ends = np.array([_ends(row.x[flat[p][0].feature][flat[p][1]]) for row, p in zip(series, places, strict=True)])
    for i, (row, place) in enumerate(zip(series, places, strict=True)):
        if row.clusters is not None:
            covariance[i], freedom[i] = _clustered(row, flat[place][0], (fit_, place, flat[place][1]), covariance[i])
    hidden = [row.within[fit_.model.noise.log] for row in series]
    quantile = stdtrit(freedom, 0.5 + options.confidence / 2.0)
    error = 2.0 * variance**2 / freedom
    return Fitted(fit_.model, fit_.theta[places], covariance, ends, variance + hidden, error, quantile)


def _clustered(row: Rows, part: Partition, cell: Cell, alone: Array) -> tuple[Array, float]:
    """Covariance from the spread between runs and its freedom; ``alone`` where the segment lies in one run."""
    fit_, place, some = cell
    assert row.clusters is not None
    runs = np.unique(row.clusters[some], return_inverse=True)[1].reshape(-1)
    if runs.max() == 0:
        return alone, 1.0
    residual, gradient = _residual(row, part, cell)
    out, places = np.zeros((3, 3)), np.ix_(fit_.model.columns, fit_.model.columns)
    out[places] = cluster_covariance(gradient, row.w[some], residual, runs)
    return out + fit_.covariance[place] * float(fit_.floor[place]) ** 2, float(runs.max())
