"""Two or more regimes: which series have breakpoints, the piecewise laws that say so, and lack of fit of the others.

A smooth law stands until a partition lowers the deviance by more than its cost (:mod:`perflaw.learn.series.partition`).
If not even a dependence is established, permutations of the responses have to confirm the partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import number, product
from perflaw.laws.tree import Binary, Expression, Name
from perflaw.learn.series.candidates import CONSTANTS, Candidates, Choice
from perflaw.learn.series.describe import slopes_of
from perflaw.learn.series.independence import normal_tail
from perflaw.learn.series.law import Evidence, judge, new_law
from perflaw.learn.series.learnt import FACTORS, Columns, Learnt, PredictionPoints, Predictor
from perflaw.learn.series.model import LOGNORMAL, NORMAL, Band, FittedModel, widest
from perflaw.learn.series.partition import FEWEST_SIZES, SortedSeries, best_partitions, confirmed, cost
from perflaw.learn.series.segments import FittedPartition, Partition, fit_partitions
from perflaw.learn.series.series import Array, Options, Rows
from perflaw.special import fdtrc
from perflaw.types import Alternative, Breakpoint

FEWEST_RESIDUALS = 8
"""Fewest residuals for which the normal approximation of the rank ratio is good."""
MISFIT = 0.01
"""A law with a smaller p has the wrong shape."""
RELEVANT = 0.07
"""A smooth law with a smaller relative root mean square residual is good enough whatever fits better."""
RELEVANT_BEYOND = 1.25
"""Two laws that differ by less than this factor at ten times the largest size tell the same."""
MARGIN = 2.0
"""Deviance that a partition may lack once it is fitted exactly: the search's sums stand for exact fits up to this."""
DOUBT = 4.0
"""A smooth law stays plausible beside a partition whose gain exceeds its cost by less."""


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Laws of one feature, each between two of its values; as :class:`~perflaw.learn.series.learnt.Predictor`."""

    breakpoints: tuple[Breakpoint, ...]
    """Where regimes change, increasing."""
    segments: tuple[tuple[FittedModel, ...], ...]
    """Every regime's law first, then those that fit it equally well; one regime more than breakpoints."""

    @property
    def features(self) -> tuple[str, ...]:
        """The feature that decides."""
        return (self.breakpoints[0].feature,)

    def mean(self, at: Columns) -> Array:
        """Expected response at k points, (k,)."""
        x = at[self.features[0]]
        means = np.stack([laws[0].mean(x) for laws in self.segments])
        return np.asarray(np.take_along_axis(means, self._regime(x)[None], axis=0)[0])

    def band(self, at: Columns) -> Band:
        """Mean and limits at k points, (k,) each; near a breakpoint the limits are those of both sides."""
        x = at[self.features[0]]
        regime = self._regime(x)
        bands = [widest([law.band(x) for law in laws]) for laws in self.segments]
        mean, *limits = (
            np.take_along_axis(np.stack(column), regime[None], axis=0)[0] for column in zip(*bands, strict=True)
        )
        for i, breakpoint_ in enumerate(self.breakpoints):
            near = (x >= breakpoint_.low) & (x <= breakpoint_.high)
            for side in (bands[i], bands[i + 1]):
                for place, widen in enumerate((np.minimum, np.maximum) * 2):
                    limits[place] = np.where(near, widen(limits[place], side[place + 1]), limits[place])
        return mean, limits[0], limits[1], limits[2], limits[3]

    def _regime(self, x: Array) -> NDArray[np.intp]:
        return np.asarray(np.searchsorted(np.array([one.value for one in self.breakpoints]), x), dtype=np.intp)


def piecewise_mean(breakpoints: Sequence[Breakpoint], means: Sequence[Expression]) -> Expression:
    """Mean of a piecewise law: the sum of every regime's mean times whether the regime holds, which is 1 or 0.

    >>> from perflaw.laws.printing import show
    >>> from perflaw.laws.reading import parse_expression
    >>> show(piecewise_mean([Breakpoint("n", 64.0, 60.0, 70.0)], [parse_expression("3*n"), parse_expression("0.1*n^2")]))
    '(n <= 64)*(3*n) + (n > 64)*(0.1*n^2)'
    """
    x, ends = Name(breakpoints[0].feature), [number(one.value) for one in breakpoints]
    parts: list[Expression] = []
    for i, mean in enumerate(means):
        above = [Binary(">", x, ends[i - 1])] if i else []
        below = [Binary("<=", x, ends[i])] if i < len(ends) else []
        parts.append(Binary("*", product([*above, *below]), mean))
    return reduce(lambda left, right: Binary("+", left, right), parts)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A series, the feature it may be split by, and its smooth law."""

    series: int
    feature: int
    model: int
    established: bool


def regimes(
    candidates: Candidates,
    choices: Sequence[Choice],
    learnt: Sequence[Learnt],
    at: PredictionPoints,
    options: Options,
) -> list[Learnt]:
    """The laws of a batch, with piecewise laws for series with breakpoints; the fit of the others is tested."""
    out = list(learnt)
    searched = list(_paying_partitions(candidates, choices, options))
    fits = fit_partitions(candidates.rows, [part for _, part in searched], options)
    for (cell, part), fitted in zip(searched, fits, strict=True):
        row, n = candidates.rows[cell.series], float(candidates.rows[cell.series].y.size)
        # What the partition gains beyond its cost once its laws are fitted exactly.
        noise = LOGNORMAL if part.log else NORMAL
        gain = part.smooth - noise.deviance(fitted.rss, fitted.floor, n, (row.w * row.log_y).sum())
        paid = cost(len(fitted.segments), fitted.parameters, fitted.effective)
        excess = float(gain * fitted.effective / n - paid)
        if excess > -MARGIN:
            smooth = learnt[cell.series] if excess < DOUBT and cell.established else None
            pieces = _piecewise_law(fitted, smooth, at)
            if tells_more(pieces, learnt[cell.series]):
                out[cell.series] = pieces
    for b, choice in enumerate(choices):
        if out[b] is learnt[b]:
            out[b] = _with_lack_of_fit(candidates, b, choice, learnt[b])
    return out


def tells_more(pieces: Learnt, smooth: Learnt) -> bool:
    """Whether a piecewise law differs from a smooth one by so much that it matters.

    They may differ over the data, or surely tell different costs of an input ten times the largest: a single power can be
    within 10 % of the regimes of a list that leaves the caches, and still grow on as none of them does. What each leaves
    unexplained is no measure of that: the more costs scatter, the less any law changes it.
    """
    [feature], series = pieces.law.features, pieces.rows.series
    one, other = pieces.mean(series.features), smooth.mean(series.features)
    apart, size = one - other, float(np.sqrt(np.mean(series.y**2)))
    if pieces.rows.positive:
        apart, size = np.log(np.maximum(one, 1e-300) / np.maximum(other, 1e-300)), 1.0
    if float(np.sqrt(np.mean(apart**2))) > RELEVANT * size:
        return True
    beyond = {feature: np.array([FACTORS[-1] * pieces.law.range[feature][1]])}
    (mean, low, high), (smooth_mean, smooth_low, smooth_high) = (
        [float(limit[0]) for limit in law.band(beyond)[:3]] for law in (pieces, smooth)
    )
    apart_beyond = low > smooth_high or high < smooth_low
    return apart_beyond and max(mean, smooth_mean) >= RELEVANT_BEYOND * min(mean, smooth_mean)


def _paying_partitions(
    candidates: Candidates, choices: Sequence[Choice], options: Options
) -> Iterator[tuple[_Cell, Partition]]:
    """Series whose best partition pays its cost, with that partition.

    A feature of enough sizes is worth a search, unless the law is perfect.
    """
    groups: dict[tuple[int, bool], list[_Cell]] = defaultdict(list)
    for b, choice in enumerate(choices):
        row, m, depends = candidates.rows[b], choice.model, choice.model >= CONSTANTS
        if not row.names or (row.clusters is not None and not depends) or np.ptp(row.y) == 0:
            continue
        for f in [choice.feature] if depends else range(candidates.features):
            if candidates.sizes[b, f] >= 2 * FEWEST_SIZES and not candidates.perfect(b, f, m):
                cell = _Cell(b, f, m, depends and choice.established)
                if row.positive:
                    groups[row.y.size, True].append(cell)
                if not row.positive or not candidates.fits[m].model.noise.log:
                    groups[row.y.size, False].append(cell)
    best: dict[int, tuple[float, _Cell, Partition]] = {}
    for (_, log), cells in groups.items():
        rows = [candidates.rows[cell.series] for cell in cells]
        sorted_, orders = _sorted(rows, [cell.feature for cell in cells])
        places = [cell.series * candidates.features + cell.feature for cell in cells]
        smooth = np.array([candidates.fits[c.model].deviance[place] for c, place in zip(cells, places, strict=True)])
        worth = np.array([row.effective / row.y.size for row in rows])
        found = best_partitions(sorted_, log, smooth, worth)
        for cell, order, one in zip(cells, orders, found, strict=True):
            if one.excess <= 0 or (cell.series in best and one.excess <= best[cell.series][0]):
                continue
            # The smooth law has to be wrong by enough to matter: relative to itself, or to the size of signed responses.
            row, law = candidates.rows[cell.series], (cell.series, cell.feature, cell.model)
            residual = candidates.relative_residual(*law) if row.positive else candidates.residual(*law)
            size = 1.0 if row.positive else float(np.sqrt(np.mean(row.y**2)))
            if float(np.sqrt(np.mean(residual**2))) > RELEVANT * size:
                part = Partition(cell.series, cell.feature, log, order, one.cuts, one.smooth)
                best[cell.series] = (one.excess, cell, part)
    for series in sorted(best):
        _, cell, part = best[series]
        own, _ = _sorted([candidates.rows[series]], [cell.feature])
        if cell.established or confirmed(own, part.log, options.alpha / candidates.features):
            yield cell, part


def _sorted(rows: Sequence[Rows], features: Sequence[int]) -> tuple[SortedSeries, NDArray[np.intp]]:
    """Rows of equal length sorted by a feature each, and the order, (S, n)."""
    x = np.stack([row.x[f] for row, f in zip(rows, features, strict=True)])
    order = np.argsort(x, axis=-1, kind="stable")
    y, log_y, w = (np.stack([getattr(row, name) for row in rows]) for name in ("y", "log_y", "w"))
    return SortedSeries(*(np.take_along_axis(column, order, axis=-1) for column in (x, y, log_y, w))), order


def _piecewise_law(fitted: FittedPartition, smooth: Learnt | None, at: PredictionPoints) -> Learnt:
    """The piecewise law of a series; ``smooth`` is the law that stays plausible beside it, if it does."""
    row, part, laws, last = fitted.row, fitted.partition, fitted.laws, fitted.laws[-1]
    name, breakpoints = row.names[part.feature], fitted.breakpoints()
    slopes = slopes_of(name, last)
    values = row.log_y if part.log else row.y
    total = float((row.w * (values - np.average(values, weights=row.w)) ** 2).sum())
    evidence = Evidence(
        units=row.y.size,
        runs=row.runs,
        sizes=int(np.unique(row.x[part.feature]).size),
        slopes=(slopes[1][name], slopes[2][name]),
        feature=row.series.to_vary(name),
        ways=row.series.ways,
    )
    law = new_law(
        row.series,
        row.runs,
        family="piecewise",
        mean=piecewise_mean(breakpoints, [mine[0].mean for mine in laws]),
        noise=last[0].noise,
        slopes=slopes,
        verdict=judge(evidence),
        r2=1.0 - fitted.rss / total if total > 0 else None,
        coefficient=last[0].coefficient,
        breakpoints=breakpoints,
        segments=fitted.segment_laws(),
    )
    piecewise = Piecewise(breakpoints, tuple(tuple(one.fitted for one in mine) for mine in laws))
    plausible: tuple[Predictor, ...] = (piecewise,)
    if smooth:
        plausible = (piecewise, *smooth.plausible)
        other = smooth.law
        law = replace(law, alternatives=(Alternative(other.family, other.expression, other.slope, 0.0),))
    return Learnt(law, plausible, row).with_predictions(at)


def _with_lack_of_fit(candidates: Candidates, b: int, choice: Choice, learnt: Learnt) -> Learnt:
    """A smooth law with p of its lack of fit; it is inconclusive if it is wrong by too much to be extrapolated.

    Perfect fits, few rows, and rows that share runs cannot say.
    """
    row, f, m = candidates.rows[b], choice.feature, choice.model
    few = row.y.size < FEWEST_RESIDUALS
    if m < CONSTANTS or row.clusters is not None or few or candidates.perfect(b, f, m):
        return learnt
    residual, parameters = candidates.residual(b, f, m), len(candidates.fits[m].model.places)
    sizes, size = np.unique(row.x[f], return_inverse=True)
    if row.y.size - sizes.size >= 3 and sizes.size > parameters:
        p = p_of_replicates(residual, row.w, size.reshape(-1), parameters)
    else:
        p = p_of_rank_ratio(residual[np.argsort(row.x[f], kind="stable")])
    law = replace(learnt.law, lack_of_fit=p)
    misfit = float(np.sqrt(np.mean(candidates.relative_residual(b, f, m) ** 2)))
    if law.verdict == "law" and p < MISFIT and misfit > RELEVANT:
        ways = candidates.rows[b].series.ways
        advice = f"add {ways.vary.format(feature=law.features[0])} in between"
        law = replace(
            law,
            verdict="inconclusive",
            reason=f"the law misses the shape by {100 * misfit:.0f} % (p = {p:.2g}): {advice}",
        )
    return replace(learnt, law=law)


def p_of_replicates(residual: Array, w: Array, size: NDArray[np.intp], parameters: int) -> float:
    """P of the F test of a law against the means of rows of one size (Draper & Smith 1998, §2.1).

    residual, w and size (n,), which numbers the distinct sizes; rows of one size show what noise is.
    """
    weight = np.bincount(size, w)
    means = np.bincount(size, w * residual) / weight
    inside = float((w * (residual - means[size]) ** 2).sum())
    across = float((weight * means**2).sum())
    freedom = weight.size - parameters, residual.size - weight.size
    if inside <= 0:
        return 0.0 if across > 0 else 1.0
    return float(fdtrc(*freedom, (across / freedom[0]) / (inside / freedom[1])))


def p_of_rank_ratio(residual: Array) -> float:
    """P of the rank von Neumann ratio against runs in residuals (n,) ordered by the feature (Bartels 1982).

    The test assumes nothing about the noise.

    >>> p_of_rank_ratio(np.arange(20.0)) < 1e-4, p_of_rank_ratio(np.resize([1.0, -1.0], 20)) > 0.99
    (True, True)
    """
    n = residual.size
    ranks = np.argsort(np.argsort(residual, kind="stable"), kind="stable") + 1.0
    ratio = float((np.diff(ranks) ** 2).sum() / (n * (n * n - 1.0) / 12.0))
    spread = np.sqrt(4.0 * (n - 2) * (5 * n * n - 2 * n - 9) / (5.0 * n * (n + 1) * (n - 1) ** 2))
    return normal_tail((2.0 - ratio) / spread)
