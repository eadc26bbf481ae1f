"""Two or more regimes: which series have breakpoints, and the laws that say so.

A smooth law stands until a partition lowers the deviance by more than its cost (:mod:`perflaw.learn.series.partition`).
Where not even a dependence is established, permuting the responses has to confirm the partition.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from perflaw.confidence import LEVEL
from perflaw.laws.build import number, product
from perflaw.laws.tree import Binary, Expression, Name
from perflaw.learn.series.band import Band, Fitted
from perflaw.learn.series.candidates import CONSTANTS, Candidates, residual_of
from perflaw.learn.series.choose import Choice
from perflaw.learn.series.describe import Described, alternatives
from perflaw.learn.series.law import new_law
from perflaw.learn.series.learnt import FACTORS, Asked, Columns, Learnt, percentile95
from perflaw.learn.series.partition import FEWEST_SIZES, Sorted, best_partitions, confirmed, cost, splits
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.ranks import normal_tail
from perflaw.learn.series.segments import Fitting, Partition, Segment, fit_partitions
from perflaw.learn.series.series import Array, Options, Series
from perflaw.learn.series.verdict import Evidence, judge
from perflaw.types import Alternative, Breakpoint, Law, Verdict

# ---- A law of two or more regimes that can be asked, and its words.


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Laws of one feature, each between two of its values; as :class:`~perflaw.learn.series.learnt.Asked`."""

    breakpoints: tuple[Breakpoint, ...]
    """Where regimes change, increasing."""
    segments: tuple[tuple[Fitted, ...], ...]
    """Every regime's law first, then those the data cannot tell from it there; one regime more than breakpoints."""

    @property
    def feature(self) -> str:
        """Feature that decides."""
        return self.breakpoints[0].feature

    @property
    def features(self) -> tuple[str, ...]:
        """Its feature."""
        return (self.feature,)

    def mean(self, at: Columns) -> Array:
        """Expected response at k points, (k,)."""
        x = at[self.feature]
        means = np.stack([laws[0].mean(x) for laws in self.segments])
        return np.asarray(np.take_along_axis(means, self._regime(x)[None], axis=0)[0])

    def band(self, at: Columns) -> Band:
        """Mean and limits at k points, (k,) each; near a breakpoint those of both its sides."""
        x = at[self.feature]
        regime = self._regime(x)
        bands = [_union(laws, x) for laws in self.segments]
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
        return np.asarray(
            np.searchsorted(np.array([one.value for one in self.breakpoints]), x, side="left"), dtype=np.intp
        )


def _union(laws: Sequence[Fitted], x: Array) -> Band:
    """The first law's mean and the widest limits."""
    mean, low, high, new_low, new_high = laws[0].band(x)
    for law in laws[1:]:
        _, *other = law.band(x)
        low, high = np.minimum(low, other[0]), np.maximum(high, other[1])
        new_low, new_high = np.minimum(new_low, other[2]), np.maximum(new_high, other[3])
    return mean, low, high, new_low, new_high


def piecewise_mean(breakpoints: Sequence[Breakpoint], means: Sequence[Expression]) -> Expression:
    """Mean of a piecewise law: every regime's mean times whether the regime holds, which is 1 or 0.

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


# ---- From a fitted partition to a law: breakpoints with intervals, the segments' laws, words and verdict.

LIKELIHOOD = round(-2.0 * math.log(1.0 - math.sqrt(LEVEL)), 2)
"""Quantile of the likelihood ratio of a breakpoint's place at the confidence level (Hansen 2000, table 1)."""

CROSSING = 64
"""Points between two sizes at which regimes are compared for their crossing."""


def regime_law(
    row: Rows,
    part: Partition,
    fitting: Fitting,
    smooth: Learnt | None,
    at: Sequence[Mapping[str, float]] | None,
    options: Options,
) -> Learnt:
    """The piecewise law of a series; ``smooth`` is the law that stays beside it, if it does."""
    laws = [list(segment.laws) for segment in fitting.segments]
    breakpoints = _breakpoints(row, part, laws, fitting.variance)
    chosen = Piecewise(breakpoints, tuple(tuple(one.plausible.law for one in mine) for mine in laws))
    law = _law(row, part, fitting, laws, breakpoints)
    plausible: tuple[Asked, ...] = (chosen, *(smooth.plausible if smooth else ()))
    if smooth:
        law = replace(law, alternatives=(_alternative(smooth.law),))
    learnt = Learnt(law, plausible, row)
    points = at if at is not None else default_points(row)
    return Learnt(replace(law, predictions=tuple(learnt.predict(points))), plausible, row)


def default_points(row: Rows) -> list[dict[str, float]]:
    """2 and 10 times the 95th percentile of every feature."""
    tops = {name: percentile95(x) for name, x in row.series.features.items()}
    return [{name: top * factor for name, top in tops.items()} for factor in FACTORS.tolist()]


def _law(
    row: Rows, part: Partition, fitting: Fitting, laws: list[list[Described]], breakpoints: tuple[Breakpoint, ...]
) -> Law:
    name, last = row.names[part.feature], laws[-1]
    chosen = last[0]
    low, high = min(one.slope[1] for one in last), max(one.slope[2] for one in last)
    return new_law(
        row.series,
        row.runs,
        family="piecewise",
        mean=piecewise_mean(breakpoints, [mine[0].mean for mine in laws]),
        noise=chosen.noise,
        slopes=({name: chosen.slope[0]}, {name: low}, {name: high}),
        verdict=_verdict(row, part, (low, high)),
        r2=_r2(row, part, fitting),
        coefficient=chosen.coefficient,
        breakpoints=breakpoints,
        segments=tuple(_segment_law(row, part, one, mine) for one, mine in zip(fitting.segments, laws, strict=True)),
    )


def _segment_law(row: Rows, part: Partition, segment: Segment, mine: list[Described]) -> Law:
    """One regime as a law of its own."""
    name, chosen = row.names[part.feature], mine[0]
    own = Series(row.series.name, row.y[segment.rows], {name: row.x[part.feature][segment.rows]})
    slopes = [one.slope for one in mine]
    return new_law(
        own,
        int(segment.rows.size if row.clusters is None else np.unique(row.clusters[segment.rows]).size),
        family=chosen.family,
        mean=chosen.mean,
        noise=chosen.noise,
        slopes=(
            {name: slopes[0][0]},
            {name: min(one[1] for one in slopes)},
            {name: max(one[2] for one in slopes)},
        ),
        features=(name,) if chosen.plausible.feature else (),
        verdict=("law" if chosen.plausible.feature else "none", ""),
        r2=None,
        coefficient=chosen.coefficient,
        intercept=chosen.intercept if chosen.law.model.intercept else None,
        exponents=chosen.exponents,
        alternatives=alternatives(mine, np.inf),
    )


def _alternative(law: Law) -> Alternative:
    return Alternative(law.family, law.expression, law.slope, 0.0)


def _verdict(row: Rows, part: Partition, slopes: tuple[float, float]) -> tuple[Verdict, str]:
    name, x = row.names[part.feature], row.x[part.feature]
    return judge(
        Evidence(
            established=True,
            constant=False,
            varies=True,
            units=row.y.size,
            runs=row.runs,
            sizes=int(np.unique(x).size),
            slopes=slopes,
            feature=name,
        )
    )


def _r2(row: Rows, part: Partition, fitting: Fitting) -> float | None:
    """1 − RSS/TSS on the scale of the noise."""
    values = row.log_y if part.log else row.y
    total = float((row.w * (values - np.average(values, weights=row.w)) ** 2).sum())
    return 1.0 - fitting.rss / total if total > 0 else None


def _breakpoints(row: Rows, part: Partition, laws: list[list[Described]], variance: float) -> tuple[Breakpoint, ...]:
    """Every breakpoint with its interval: places whose likelihood ratio is small, the other breakpoints held."""
    out, ends = [], [0, *part.cuts, part.order.size]
    for i, cut in enumerate(part.cuts):
        rows, x = part.order[ends[i] : ends[i + 2]], row.x[part.feature]
        parameters = sum(len(mine[0].law.model.columns) for mine in laws[i : i + 2])
        inside = _interval(
            _regime_law_sorted(row, x, rows), part.log, cut - ends[i], min(max(parameters, 2), 4), variance
        )
        low, high = (float(x[rows[k]]) for k in inside)
        below, above = float(x[part.order[cut - 1]]), float(x[part.order[cut]])
        value = _crossing(laws[i][0].law, laws[i + 1][0].law, below, above)
        out.append(Breakpoint(row.names[part.feature], value, low, high))
    return tuple(out)


def _regime_law_sorted(row: Rows, x: Array, rows: NDArray[np.intp]) -> Sorted:
    return Sorted(*(column[rows][None] for column in (x, row.y, row.log_y, row.w)))


def _interval(rows: Sorted, log: bool, cut: int, parameters: int, variance: float) -> tuple[int, int]:
    """Last row surely before the breakpoint and first row surely after it, by Hansen's likelihood ratio."""
    rss = splits(rows, log)[parameters][0]
    near = np.flatnonzero(rss - rss[cut] <= LIKELIHOOD * variance)
    return int(min(near.min(initial=cut), cut)) - 1, int(max(near.max(initial=cut), cut))


def _crossing(left: Fitted, right: Fitted, below: float, above: float) -> float:
    """Where two regimes meet between the sizes beside a breakpoint; else the middle, geometric where that is one."""
    geometric = below > 0
    middle = float(np.sqrt(below * above)) if geometric else (below + above) / 2.0
    grid = np.geomspace(below, above, CROSSING) if geometric else np.linspace(below, above, CROSSING)
    difference = left.mean(grid) - right.mean(grid)
    crossed = np.flatnonzero(difference[:-1] * difference[1:] <= 0)
    inner = crossed[(crossed > 0) & (crossed < CROSSING - 2)]
    return float((grid[inner[0]] + grid[inner[0] + 1]) / 2.0) if inner.size else middle


# ---- Lack of fit: whether the chosen law has the right shape.
#
# Where sizes repeat, rows of one size say what noise is, and an F test compares the law with the sizes' own means
# (Draper & Smith 1998, §2.1). Otherwise the residuals in the order of the feature should not go in runs: the rank
# form of
# von Neumann's ratio (Bartels 1982), which asks nothing of the noise.

FEWEST = 8
"""Fewest rows the normal approximation of the rank ratio is good for."""

MISFIT = 0.01
"""From this p on a law has the wrong shape."""


def lack_of_fit(found: Candidates, b: int, choice: Choice) -> tuple[float, float] | None:
    """Chance p that a series' law has the right shape, and how far it is off (relative root mean square).

    None where the data cannot say: perfect fits, few rows, rows that share runs.
    """
    row, f, m = found.rows[b], choice.feature, choice.model
    if m < CONSTANTS or row.clusters is not None or row.y.size < FEWEST or found.perfect(b, f, m):
        return None
    cell, model = b * found.features + f, found.fits[m].model
    residual, _ = residual_of(model, (row.x[f], row.y, row.log_y), found.fits[m].theta[cell], found.ends[cell])
    relative = residual if model.noise.log else residual / np.maximum(np.abs(row.y - residual), np.abs(residual))
    sizes, places = np.unique(row.x[f], return_inverse=True)
    repeated = row.y.size - sizes.size
    if repeated >= 3 and sizes.size > len(model.columns):
        p = replicated(residual, row.w, places.reshape(-1), len(model.columns))
    else:
        p = bartels(residual[np.argsort(row.x[f], kind="stable")])
    return p, float(np.sqrt(np.mean(relative**2)))


def replicated(residual: Array, w: Array, size: NDArray[np.intp], parameters: int) -> float:
    """Value p of the F test against the means of rows of one size; residual, w, size (n,)."""
    weight = np.bincount(size, w)
    means = np.bincount(size, w * residual) / weight
    inside = float((w * (residual - means[size]) ** 2).sum())
    across = float((weight * means**2).sum())
    freedom = weight.size - parameters, residual.size - weight.size
    if inside <= 0:
        return 0.0 if across > 0 else 1.0
    return float(fdtrc(*freedom, (across / freedom[0]) / (inside / freedom[1])))


def bartels(residual: Array) -> float:
    """Value p of the rank von Neumann ratio against runs in ordered residuals, (n,).

    >>> bartels(np.arange(20.0)) < 1e-4, bartels(np.resize([1.0, -1.0], 20)) > 0.99
    (True, True)
    """
    n = residual.size
    ranks = np.argsort(np.argsort(residual, kind="stable"), kind="stable") + 1.0
    ratio = float((np.diff(ranks) ** 2).sum() / (n * (n * n - 1.0) / 12.0))
    spread = np.sqrt(4.0 * (n - 2) * (5 * n * n - 2 * n - 9) / (5.0 * n * (n + 1) * (n - 1) ** 2))
    return normal_tail((2.0 - ratio) / spread)


RELEVANT = 0.07
"""A smooth law off by less (relative root mean square) is good enough whatever fits better."""

MARGIN = 2.0
"""The search's sums stand for exact fits up to so much deviance: a partition may lack it once fitted."""

DOUBT = 4.0
"""A smooth law stays beside a partition whose gain exceeds its cost by less."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A series and the feature it may be split by."""

    series: int
    feature: int
    model: int
    established: bool


def regimes(
    found: Candidates,
    choices: Sequence[Choice],
    learnt: Sequence[Learnt],
    at: Sequence[Mapping[str, float]] | None,
    options: Options,
) -> list[Learnt]:
    """The laws of a batch, those of series with breakpoints replaced by piecewise ones; the others' fit is tested."""
    out = list(learnt)
    searched = list(_searched(found, choices, options))
    parts = [part for _, part in searched]
    for (cell, part), fitting in zip(searched, fit_partitions(found.rows, parts, options), strict=True):
        excess = _excess(found.rows[cell.series], part, fitting)
        if excess <= -MARGIN:
            continue
        smooth = learnt[cell.series] if excess < DOUBT and cell.established else None
        out[cell.series] = regime_law(found.rows[cell.series], part, fitting, smooth, at, options)
    return [_tested(found, b, choices[b], one) if one is learnt[b] else one for b, one in enumerate(out)]


def _excess(row: Rows, part: Partition, fitting: Fitting) -> float:
    """What the partition gains beyond its cost once its laws are fitted exactly."""
    n = float(row.y.size)
    jacobian = 2.0 * float((row.w * row.log_y).sum()) if part.log else 0.0
    variance = max(fitting.rss / n, fitting.floor**2)
    gain = part.smooth - (n * np.log(variance) + fitting.rss / variance + jacobian)
    return float(gain * fitting.worth / n - cost(len(part.cuts) + 1, fitting.parameters, fitting.worth))


def _tested(found: Candidates, b: int, choice: Choice, learnt: Learnt) -> Learnt:
    """A smooth law with p of its lack of fit; no law where it is off by too much to be extrapolated."""
    fit_ = lack_of_fit(found, b, choice)
    if fit_ is None:
        return learnt
    law = replace(learnt.law, lack_of_fit=fit_[0])
    if law.verdict == "law" and fit_[0] < MISFIT and fit_[1] > RELEVANT:
        why = (
            f"the law misses the shape by {fit_[1]:.0%} (p = {fit_[0]:.2g}): add --vary {law.features[0]}=… in between"
        )
        law = replace(law, verdict="inconclusive", reason=why)
    return replace(learnt, law=law)


def _searched(found: Candidates, choices: Sequence[Choice], options: Options) -> Iterator[tuple[_Cell, Partition]]:
    """Series whose best partition pays its cost, with it."""
    groups: dict[tuple[int, bool], list[_Cell]] = defaultdict(list)
    for cell in _candidates(found, choices):
        row = found.rows[cell.series]
        if row.positive:
            groups[row.y.size, True].append(cell)
        if not row.positive or not found.fits[cell.model].model.noise.log:
            groups[row.y.size, False].append(cell)
    best: dict[int, tuple[float, _Cell, Partition]] = {}
    for (_, log), cells in groups.items():
        for excess, cell, part in _paying(found, cells, log):
            if cell.series not in best or excess > best[cell.series][0]:
                best[cell.series] = (excess, cell, part)
    for series in sorted(best):
        _, cell, part = best[series]
        alpha = options.alpha / found.features
        if cell.established or confirmed(_sorted(found.rows[series : series + 1], [cell])[0], part.log, alpha):
            yield cell, part


def _candidates(found: Candidates, choices: Sequence[Choice]) -> Iterator[_Cell]:
    """What is worth a search: sizes enough, and the law is not perfect."""
    for b, choice in enumerate(choices):
        row, some = found.rows[b], choice.model >= CONSTANTS
        if not row.names or (row.clusters is not None and not some) or np.ptp(row.y) == 0:
            continue
        for f in [choice.feature] if some else range(found.features):
            if found.sizes[b, f] >= 2 * FEWEST_SIZES and not found.perfect(b, f, choice.model):
                yield _Cell(b, f, choice.model, some and choice.established)


def _relevant(found: Candidates, cell: _Cell) -> bool:
    """The smooth law is off by enough to matter: relative to itself where responses are positive, else to their size."""
    row, fit_ = found.rows[cell.series], found.fits[cell.model]
    place = cell.series * found.features + cell.feature
    residual, _ = residual_of(fit_.model, (row.x[cell.feature], row.y, row.log_y), fit_.theta[place], found.ends[place])
    if row.positive and not fit_.model.noise.log:
        residual = residual / np.maximum(row.y - residual, np.abs(residual))
    size = 1.0 if row.positive else float(np.sqrt(np.mean(row.y**2)))
    return float(np.sqrt(np.mean(residual**2))) > RELEVANT * size


def _paying(found: Candidates, cells: Sequence[_Cell], log: bool) -> Iterator[tuple[float, _Cell, Partition]]:
    """Cells with a partition that pays: by how much, the cell, the partition."""
    rows = [found.rows[cell.series] for cell in cells]
    sorted_, orders = _sorted(rows, cells)
    smooth = np.array([found.fits[c.model].deviance[c.series * found.features + c.feature] for c in cells])
    worth = np.array([row.information / row.y.size for row in rows])
    best = best_partitions(sorted_, log, smooth, worth)
    for cell, order, one in zip(cells, orders, best, strict=True):
        if one.excess > 0 and _relevant(found, cell):
            yield one.excess, cell, Partition(cell.series, cell.feature, log, order, one.cuts, one.smooth)


def _sorted(rows: Sequence[Rows], cells: Sequence[_Cell]) -> tuple[Sorted, NDArray[np.intp]]:
    """Rows of equal length sorted by their cell's feature, and the order, (S, n)."""
    x = np.stack([row.x[cell.feature] for row, cell in zip(rows, cells, strict=True)])
    order = np.argsort(x, axis=-1, kind="stable")
    columns = [x, *(np.stack([getattr(row, name) for row in rows]) for name in ("y", "log_y", "w"))]
    return Sorted(*(np.take_along_axis(column, order, axis=-1) for column in columns)), order
