"""All splits of a part of the records at once, by what simple laws on both sides leave unexplained (Freud, Algorithm 1).

Three responses are looked at: y, log y, and the residual of the part's law. They are densities of y (with the Jacobian),
so the information criterion compares them (Schwarz 1978).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Mask, Test, between
from perflaw.learn.annotations.table import MOST_LEVELS, PREFERENCE, Column

# ---- Sums over records from which every simple law on every part of them is fitted: one basis, or a constant.

FLAT = 1e-9
"""A basis varies in a part if it does so by more than this share of its square there."""


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """The best simple law on each of C parts, for each of R responses."""

    rss: Array
    """Weighted residual sum of squares, (C, R)."""
    parameters: Array
    """Parameters of the mean, (C, R): 1 or 2."""
    basis: NDArray[np.intp]
    """Number of the basis, −1 for a constant, (C, R)."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weighted products of n records: their sums over any part give its fits."""

    products: Array
    """(n, 1 + 2R + 2K + K·R)."""
    responses: int
    """R."""
    bases: int
    """K."""

    def sums(self, order: NDArray[np.intp], starts: NDArray[np.intp]) -> Array:
        """Sums over consecutive parts of the records in an order, (len(starts), …)."""
        return np.add.reduceat(self.products.take(order, axis=0), starts, axis=0)

    def fits(self, sums: Array, worth: float) -> Fits:
        """Best laws of parts from their sums (C, …); ``worth``: independent records a unit of weight."""
        r, k = self.responses, self.bases
        ends = np.cumsum([1, r, r, k, k])
        weight, y, yy, g, gg, gy = np.split(sums, ends, axis=1)
        weight = np.maximum(weight, 1e-12)
        spread = np.maximum(yy - y * y / weight, 0.0)
        if k == 0:
            return Fits(spread, np.ones_like(spread), np.full(spread.shape, -1))
        among = gg - g * g / weight
        usable = among > FLAT * np.maximum(gg, 1e-300)
        gained = gy.reshape(-1, k, r) - g[:, :, None] * y[:, None, :] / weight[:, :, None]
        gained = np.square(gained, out=gained)
        gained /= np.where(usable, among, np.inf)[:, :, None]
        best = gained.argmax(axis=1)
        rest = np.maximum(spread - np.take_along_axis(gained, best[:, None, :], axis=1)[:, 0], 0.0)
        count = np.maximum(weight * worth, 2.0)
        floor = 1e-12 * np.maximum(yy, 1e-300)
        better = count * np.log((spread + floor) / (rest + floor)) > np.log(count)
        return Fits(np.where(better, rest, spread), np.where(better, 2.0, 1.0), np.where(better, best, -1))


def moments_of(responses: Array, bases: Array, weight: Array) -> Moments:
    """Moments of responses (R, n) and bases (K, n) with weights (n,); both are best of mean 0 and size 1."""
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
    return Moments(np.ascontiguousarray(products.T), r, k)


def standard(rows: Array, weight: Array) -> tuple[Array, Array]:
    """Rows (k, n) with weighted mean 0 and size 1, and the sizes (k,); rows that do not vary become 0."""
    total = weight.sum()
    centred = rows - (rows @ weight / total)[:, None]
    size = np.sqrt((centred**2) @ weight / total)
    flat = size <= 1e-12 * np.abs(rows).max(axis=1, initial=0.0)
    size = np.where(flat, 1.0, size)
    return np.where(flat[:, None], 0.0, centred / size[:, None]), size


Array = NDArray[np.float64]

CUTS = 48
"""Thresholds of a feature that are tried at first; the best one is then refined."""
ALIKE = 2.0
"""Splits within so much of the best one's criterion tell the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Records of one part with what splits are judged by; n records."""

    columns: Sequence[Column]
    """Columns that conditions may test; numbers are all read."""
    moments: Moments
    """Of the responses and bases."""
    scales: Array
    """−2 log density of a residual of size 1 in each response, less its logarithm: (R,)."""
    sizes: Array
    """Size of each response, (R,)."""
    floors: Array
    """Smallest credible variance of each response, (R,)."""
    extra: Array
    """Parameters that each response has taken already, (R,)."""
    weight: Array
    """(n,), summing to n."""
    worth: float
    """Independent records that a unit of weight is."""
    fewest: int
    """Records that a side has at least."""

    @property
    def count(self) -> float:
        """Independent records."""
        return float(self.weight.sum()) * self.worth

    def criterion(self, rss: Array, parameters: Array) -> Array:
        """Information criterion of residuals (C, R) under parameters (C, R): smaller is better."""
        variance = np.maximum(rss / self.weight.sum() * self.sizes**2, self.floors)
        fit = self.count * (np.log(variance) + self.scales)
        return np.asarray(fit + (parameters + self.extra) * np.log(self.count))


@dataclass(frozen=True, slots=True)
class Split:
    """A way to part the records in two."""

    test: Test
    """True on one side."""
    column: Column
    """What it tests."""
    criterion: float
    """Information criterion of simple laws on both sides."""
    rss: float
    """What these leave of the response, standardised."""
    response: int
    """Response that it parts best."""
    bases: tuple[int, int]
    """Basis of the law where the test holds and where not, −1 for a constant."""


def best_split(field: Field) -> tuple[Split | None, int]:
    """The split of the best criterion, and how many were looked at; of splits that tell the same the plainest."""
    found, tried = [], 0
    for some, count in _of_columns(field, field.columns):
        tried += count
        found += [some] if some else []
    if not found:
        return None, tried
    least = min(split.criterion for split in found)
    near = [split for split in found if split.criterion <= least + ALIKE]
    return min(near, key=_plainness), tried


def _plainness(split: Split) -> tuple[int, int, int, float]:
    """What is known before the call, shallow and short, goes first."""
    column = split.column
    return PREFERENCE.index(column.kind), column.name.count("."), len(column.name), split.criterion


def by_levels(field: Field, column: Column) -> float:
    """Criterion of simple laws for every value of a column by itself."""
    levels, code, count = np.unique(column.values, return_inverse=True, return_counts=True)
    order = np.argsort(code.reshape(-1), kind="stable")
    fits = field.moments.fits(field.moments.sums(order, np.r_[0, np.cumsum(count)[:-1]]), field.worth)
    parameters = fits.parameters.sum(axis=0) + levels.size - 1.0
    return float(field.criterion(fits.rss.sum(axis=0)[None], parameters[None])[0, :-1].min())


def whole(field: Field) -> Fits:
    """The best simple law on all records, C = 1."""
    return field.moments.fits(field.moments.products.sum(axis=0, keepdims=True), field.worth)


def _of_columns(field: Field, columns: Sequence[Column]) -> list[tuple[Split | None, int]]:
    """Best split by each column, and how many were looked at: thresholds on a grid, then finer around the best one.

    All columns are looked at together, for a call of NumPy costs more than its work on one of them.
    """
    parts = [_parts(field, column) for column in columns]
    found: list[Split | None] = [None] * len(parts)
    going = list(range(len(parts)))
    while going:
        best = _best(field, [parts[i] for i in going])
        for i, (split, place) in zip(going, best, strict=True):
            found[i], parts[i] = split, _finer(field, parts[i], place) if split else parts[i]
        going = [i for i, (split, _) in zip(going, best, strict=True) if split and parts[i].fresh]
    return [(split, part.tried) for split, part in zip(found, parts, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """C parts of the records, each to be held against the rest."""

    column: Column
    """What tells them apart."""
    sums: Array
    """Sums over each part, (C, …)."""
    tests: Sequence[Test] = ()
    """What holds in each of them; thresholds make theirs when asked."""
    tried: int = 0
    """Parts that the column has at all."""
    order: NDArray[np.intp] | None = None
    """Records by the value of a number, (n,); None for other columns."""
    cuts: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """Places in that order that thresholds may be at."""
    chosen: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """Those that the parts end at, (C,)."""
    fresh: bool = False
    """They were not looked at yet."""

    def test(self, place: int) -> Test:
        """What holds in one of them."""
        if self.order is None:
            return self.tests[place]
        below, above = self.column.values[self.order[self.chosen[place] - 1 : self.chosen[place] + 1]]
        return threshold(self.column.name, float(below), float(above))


def _parts(field: Field, column: Column) -> _Parts:
    """Parts to start from."""
    if column.kind == "category":
        return _levels(field, column)
    if column.kind in ("branch", "edge"):
        return _above_zero(field, column)
    values = np.asarray(column.values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cuts = _changes(values[order], field.fewest)
    chosen = _spread(cuts)
    return _Parts(column, _below(field, order, chosen), (), cuts.size, order, cuts, chosen)


def _finer(field: Field, parts: _Parts, place: int) -> _Parts:
    """Thresholds around one of the parts' ends; the same parts where there are no others."""
    if parts.order is None or parts.chosen.size == parts.cuts.size:
        return replace(parts, fresh=False)
    low, high = parts.chosen[max(place - 1, 0)], parts.chosen[min(place + 1, parts.chosen.size - 1)]
    cuts = parts.cuts[(parts.cuts >= low) & (parts.cuts <= high)]
    chosen = _spread(cuts)
    # Records before the first threshold are summed already.
    sums = parts.sums[max(place - 1, 0)] + _below(field, parts.order[low:], chosen[1:] - low)
    sums = np.concatenate([parts.sums[max(place - 1, 0)][None], sums])
    return replace(parts, sums=sums, cuts=cuts, chosen=chosen, fresh=True)


def _changes(ordered: Array, fewest: int) -> NDArray[np.intp]:
    """Places where values change, with enough records on both sides."""
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return cuts[(cuts >= fewest) & (cuts <= ordered.size - fewest)]


def _spread(cuts: NDArray[np.intp]) -> NDArray[np.intp]:
    if cuts.size <= CUTS:
        return cuts
    return cuts[np.linspace(0, cuts.size - 1, CUTS).astype(np.intp)]


def _below(field: Field, order: NDArray[np.intp], cuts: NDArray[np.intp]) -> Array:
    """Sums over the records before each of some places in an order, (C, …)."""
    if not cuts.size:
        return np.zeros((0, field.moments.products.shape[1]))
    return np.cumsum(field.moments.sums(order[: cuts[-1]], np.r_[0, cuts[:-1]]), axis=0)


def threshold(name: str, low: float, high: float) -> Test:
    """The test that holds up to ``low`` and from ``high`` on not, by a round number."""
    value = between(low, high)
    return Test(name, "<", value) if value == high else Test(name, "<=", value)


def _levels(field: Field, column: Column) -> _Parts:
    """Parts of one level of a category each."""
    levels, code, count = np.unique(column.values, return_inverse=True, return_counts=True)
    order = np.argsort(code, kind="stable")
    sums = field.moments.sums(order, np.r_[0, np.cumsum(count)[:-1]])
    n = int(count.sum())
    fine = [i for i in np.argsort(-count, kind="stable")[:MOST_LEVELS] if _enough(int(count[i]), n, field.fewest)]
    fine = [int(i) for i in fine if str(levels[i])]
    return _Parts(column, sums[fine], [Test(column.name, "==", str(levels[i])) for i in fine], len(fine))


def _above_zero(field: Field, column: Column) -> _Parts:
    """The part in which something happened at all."""
    happened = np.asarray(column.values, dtype=np.float64) > 0
    if not _enough(int(happened.sum()), happened.size, field.fewest):
        return _Parts(column, np.zeros((0, field.moments.products.shape[1])))
    sums = field.moments.products[happened].sum(axis=0, keepdims=True)
    return _Parts(column, sums, [Test(column.name, ">", 0.0, counts=True)], 1)


def _enough(inside: int, n: int, fewest: int) -> bool:
    return fewest <= inside <= n - fewest


def _best(field: Field, parts: Sequence[_Parts]) -> list[tuple[Split | None, int]]:
    """The best part of each column against the rest, and its place."""
    sums = np.concatenate([one.sums for one in parts])
    inside = field.moments.fits(sums, field.worth)
    outside = field.moments.fits(field.moments.products.sum(axis=0) - sums, field.worth)
    own = np.repeat([float(one.column.kind != "category") for one in parts], [len(one.sums) for one in parts])
    rss = inside.rss + outside.rss
    criterion = field.criterion(rss, inside.parameters + outside.parameters + own[:, None])
    out: list[tuple[Split | None, int]] = []
    first = 0
    for one in parts:
        here = criterion[first : first + len(one.sums)]
        if here.size:
            place, response = np.unravel_index(int(here.argmin()), here.shape)
            at = first + int(place), int(response)
            bases = int(inside.basis[at]), int(outside.basis[at])
            found = float(criterion[at]), float(rss[at]), int(response)
            out.append((Split(one.test(int(place)), one.column, *found, bases), int(place)))
        else:
            out.append((None, 0))
        first += len(one.sums)
    return out


def sides(field: Field, split: Split) -> Mask:
    """Where the test of a split holds, (n,)."""
    return split.test.holds({split.column.name: split.column.values})
