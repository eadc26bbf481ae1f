"""All splits of a part of the records at once, by what simple laws on both sides leave unexplained (Freud, Algorithm 1).

A simple law is a constant, or a line in one basis. Three responses are compared: y, log y, and the residual of the part's
law. They are densities of y (with the Jacobian), so that the information criterion compares them (Schwarz 1978).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Comparison, Mask, threshold
from perflaw.learn.annotations.records import PREFERENCE, RecordColumn
from perflaw.learn.series.series import evenly

Array = NDArray[np.float64]
Indexes = NDArray[np.intp]

FLAT = 1e-9
"""A basis varies in a part if its variance exceeds this share of its mean square there."""
GRID = 48
"""Number of thresholds of a feature that are tried at a time; the next ones lie around the best."""
EQUAL = 2.0
"""Splits whose criterion is within so much of the best are equal."""
MAX_LEVELS = 24
"""Number of levels of a category that are tried, the most frequent ones first."""


@dataclass(frozen=True, slots=True, eq=False)
class SimpleFits:
    """The best simple law on each of C parts, for each of R responses."""

    rss: Array
    """Weighted residual sum of squares, (C, R)."""
    parameters: Array
    """Number of parameters of the mean, (C, R): 1 or 2."""
    basis: Indexes
    """Index of the basis, −1 for a constant, (C, R)."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordProducts:
    """Weighted products of n records; their sums over any part give its simple laws."""

    products: Array
    """(n, 1 + 2R + 2K + K·R)."""
    responses: int
    """R."""
    bases: int
    """K."""

    @classmethod
    def of(cls, responses: Array, bases: Array, weight: Array) -> RecordProducts:
        """Products of responses (R, n) and bases (K, n) with weights (n,); both should have mean 0 and size 1."""
        r, k = len(responses), len(bases)
        weighted, weighted_bases = weight * responses, weight * bases
        products = np.concatenate(
            [
                weight[None],
                weighted,
                weighted * responses,
                weighted_bases,
                weighted_bases * bases,
                (bases[:, None, :] * weighted[None, :, :]).reshape(k * r, weight.size),
            ]
        )
        return cls(np.ascontiguousarray(products.T), r, k)

    def sums(self, order: Indexes, starts: Indexes) -> Array:
        """Sums over consecutive parts of the records in an order, (len(starts), …)."""
        return np.add.reduceat(self.products.take(order, axis=0), starts, axis=0)

    def fits(self, sums: Array, worth: float) -> SimpleFits:
        """Simple laws of parts from their sums (C, …); ``worth`` is the number of independent records a unit of weight."""
        r, k = self.responses, self.bases
        weight, y, yy, g, gg, gy = np.split(sums, np.cumsum([1, r, r, k, k]), axis=1)
        weight = np.maximum(weight, 1e-12)
        total = np.maximum(yy - y * y / weight, 0.0)
        if k == 0:
            return SimpleFits(total, np.ones_like(total), np.full(total.shape, -1))
        basis_squares = gg - g * g / weight
        varies = basis_squares > FLAT * np.maximum(gg, 1e-300)
        explained = gy.reshape(-1, k, r) - g[:, :, None] * y[:, None, :] / weight[:, :, None]
        explained = np.square(explained, out=explained)
        explained /= np.where(varies, basis_squares, np.inf)[:, :, None]
        best = explained.argmax(axis=1)
        left = np.maximum(total - np.take_along_axis(explained, best[:, None, :], axis=1)[:, 0], 0.0)
        count = np.maximum(weight * worth, 2.0)
        floor = 1e-12 * np.maximum(yy, 1e-300)
        better = count * np.log((total + floor) / (left + floor)) > np.log(count)
        return SimpleFits(np.where(better, left, total), np.where(better, 2.0, 1.0), np.where(better, best, -1))


def standardised(rows: Array, weight: Array) -> tuple[Array, Array]:
    """Rows (k, n) with weighted mean 0 and size 1, and their sizes (k,); rows that do not vary become 0."""
    total = weight.sum()
    centred = rows - (rows @ weight / total)[:, None]
    size = np.sqrt((centred**2) @ weight / total)
    flat = size <= 1e-12 * np.abs(rows).max(axis=1, initial=0.0)
    size = np.where(flat, 1.0, size)
    return np.where(flat[:, None], 0.0, centred / size[:, None]), size


@dataclass(frozen=True, slots=True, eq=False)
class SplitField:
    """The n records of a part with what splits are judged by."""

    columns: Sequence[RecordColumn]
    """Columns that conditions may compare; their numbers are all read."""
    products: RecordProducts
    """Products of the responses and bases."""
    scales: Array
    """−2 log density of a residual of size 1 in each response, without its logarithm: (R,)."""
    sizes: Array
    """Size of each response, (R,)."""
    floors: Array
    """Smallest credible variance of each response, (R,)."""
    extra: Array
    """Number of parameters that each response has used already, (R,)."""
    weight: Array
    """(n,), summing to n."""
    worth: float
    """Number of independent records a unit of weight."""
    fewest: int
    """Smallest number of records on a side."""

    def criterion(self, rss: Array, parameters: Array) -> Array:
        """Information criterion of residuals (C, R) under numbers of parameters (C, R): smaller is better."""
        total = float(self.weight.sum())
        count = total * self.worth
        variance = np.maximum(rss / total * self.sizes**2, self.floors)
        return np.asarray(count * (np.log(variance) + self.scales) + (parameters + self.extra) * np.log(count))

    def whole(self) -> SimpleFits:
        """The best simple law on all records, C = 1."""
        return self.products.fits(self.products.products.sum(axis=0, keepdims=True), self.worth)

    def criterion_by_level(self, column: RecordColumn) -> float:
        """Criterion of simple laws for every value of a column by itself."""
        levels, code, count = np.unique(column.values, return_inverse=True, return_counts=True)
        order = np.argsort(code.reshape(-1), kind="stable")
        fits = self.products.fits(self.products.sums(order, np.r_[0, np.cumsum(count)[:-1]]), self.worth)
        parameters = fits.parameters.sum(axis=0) + levels.size - 1.0
        return float(self.criterion(fits.rss.sum(axis=0)[None], parameters[None])[0, :-1].min())


@dataclass(frozen=True, slots=True)
class Split:
    """A way to split the records in two."""

    test: Comparison
    """The comparison that is true on one side."""
    column: RecordColumn
    """The column that it compares."""
    criterion: float
    """Information criterion of simple laws on both sides."""
    rss: float
    """Residual sum of squares of these, of the standardised response."""
    response: int
    """Index of the response that it splits best."""
    bases: tuple[int, int]
    """Index of the basis where the test is true and where it is false, −1 for a constant."""

    def mask(self) -> Mask:
        """Where the test is true, (n,)."""
        return self.test.holds({self.column.name: self.column.values})


def best_split(split_field: SplitField) -> tuple[Split | None, int]:
    """The split of the best criterion, and the number of candidates; of equal splits the plainest."""
    by_column = _best_splits(split_field)
    tried = sum(candidates.tried for _, candidates in by_column)
    splits = [split for split, _ in by_column if split]
    if not splits:
        return None, tried
    least = min(split.criterion for split in splits)

    def plainness(split: Split) -> tuple[int, int, int, float]:
        column = split.column
        return PREFERENCE.index(column.kind), column.name.count("."), len(column.name), split.criterion

    return min((split for split in splits if split.criterion <= least + EQUAL), key=plainness), tried


@dataclass(frozen=True, slots=True, eq=False)
class SplitCandidates:
    """C parts of the records by one column; each is one side of a split."""

    column: RecordColumn
    """The column."""
    sums: Array
    """Sums over each part, (C, …)."""
    tried: int
    """Number of parts that the column has in all."""
    tests: Sequence[Comparison] = ()
    """The comparison that is true in each part; those of thresholds are made on demand."""
    order: Indexes | None = None
    """Records by the value of a number, (n,); None for other columns."""
    cuts: Indexes = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """Positions in that order at which thresholds may lie."""
    chosen: Indexes = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """The cuts at which the parts end, (C,)."""

    def test(self, part: int) -> Comparison:
        """The comparison that is true in one of the parts."""
        if self.order is None:
            return self.tests[part]
        below, above = self.column.values[self.order[self.chosen[part] - 1 : self.chosen[part] + 1]]
        return threshold(self.column.name, float(below), float(above))

    def finer(self, split_field: SplitField, part: int) -> SplitCandidates | None:
        """Thresholds around the end of one of the parts; None if there are no others."""
        if self.order is None or self.chosen.size == self.cuts.size:
            return None
        before = max(part - 1, 0)
        low, high = self.chosen[before], self.chosen[min(part + 1, self.chosen.size - 1)]
        cuts = self.cuts[(self.cuts >= low) & (self.cuts <= high)]
        chosen = evenly(cuts, GRID)
        # The sums over the records before the first threshold are known already.
        later = self.sums[before] + _sums_below(split_field, self.order[low:], chosen[1:] - low)
        return replace(self, sums=np.concatenate([self.sums[before][None], later]), cuts=cuts, chosen=chosen)


def _best_splits(split_field: SplitField) -> list[tuple[Split | None, SplitCandidates]]:
    """The best split by each column with its candidates: thresholds on a grid, then finer around the best one.

    All columns are evaluated together, because a call of NumPy costs more than its work on one of them.
    """
    found: list[tuple[Split | None, SplitCandidates]] = [
        (None, _candidates(split_field, column)) for column in split_field.columns
    ]
    active = list(range(len(found)))
    while active:
        best = _evaluate(split_field, [found[i][1] for i in active])
        refined = []
        for i, (split, part) in zip(active, best, strict=True):
            candidates = found[i][1]
            finer = candidates.finer(split_field, part) if split else None
            found[i] = split, finer or candidates
            if finer:
                refined.append(i)
        active = refined
    return found


def _candidates(split_field: SplitField, column: RecordColumn) -> SplitCandidates:
    """The first candidates of a column: levels of a category, counts above 0, thresholds of a number."""
    products, fewest = split_field.products, split_field.fewest
    if column.kind == "category":
        levels, code, count = np.unique(column.values, return_inverse=True, return_counts=True)
        n = int(count.sum())
        sums = products.sums(np.argsort(code, kind="stable"), np.r_[0, np.cumsum(count)[:-1]])
        by_count = [int(i) for i in np.argsort(-count, kind="stable")[:MAX_LEVELS]]
        kept = [i for i in by_count if fewest <= count[i] <= n - fewest and str(levels[i])]
        tests = [Comparison(column.name, "==", str(levels[i])) for i in kept]
        return SplitCandidates(column, sums[kept], len(kept), tests)
    values = column.numbers
    if column.is_outcome:
        positive = values > 0
        if not fewest <= positive.sum() <= positive.size - fewest:
            return SplitCandidates(column, np.zeros((0, products.products.shape[1])), 0)
        sums = products.products[positive].sum(axis=0, keepdims=True)
        return SplitCandidates(column, sums, 1, [Comparison(column.name, ">", 0.0, counts=True)])
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    cuts = cuts[(cuts >= fewest) & (cuts <= ordered.size - fewest)]
    chosen = evenly(cuts, GRID)
    return SplitCandidates(column, _sums_below(split_field, order, chosen), cuts.size, (), order, cuts, chosen)


def _sums_below(split_field: SplitField, order: Indexes, cuts: Indexes) -> Array:
    """Sums over the records before each cut in an order, (C, …)."""
    if not cuts.size:
        return np.zeros((0, split_field.products.products.shape[1]))
    return np.cumsum(split_field.products.sums(order[: cuts[-1]], np.r_[0, cuts[:-1]]), axis=0)


def _evaluate(split_field: SplitField, columns: Sequence[SplitCandidates]) -> list[tuple[Split | None, int]]:
    """The best part of each column as a split, and its index."""
    products = split_field.products
    sums = np.concatenate([candidates.sums for candidates in columns])
    inside = products.fits(sums, split_field.worth)
    outside = products.fits(products.products.sum(axis=0) - sums, split_field.worth)
    # The number in a comparison is a parameter, a level of a category is none.
    own = np.repeat([float(one.column.kind != "category") for one in columns], [len(one.sums) for one in columns])
    rss = inside.rss + outside.rss
    criterion = split_field.criterion(rss, inside.parameters + outside.parameters + own[:, None])
    found: list[tuple[Split | None, int]] = []
    first = 0
    for candidates in columns:
        here = criterion[first : first + len(candidates.sums)]
        if not here.size:
            found.append((None, 0))
            continue
        part, response = (int(index) for index in np.unravel_index(int(here.argmin()), here.shape))
        at = first + part, response
        bases = int(inside.basis[at]), int(outside.basis[at])
        test = candidates.test(part)
        found.append((Split(test, candidates.column, float(criterion[at]), float(rss[at]), response, bases), part))
        first += len(candidates.sums)
    return found
