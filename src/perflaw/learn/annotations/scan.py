"""All splits of a part of the records at once, by what simple laws on both sides leave unexplained (Freud, Algorithm 1).

Three responses are looked at: y, log y, and the residual of the part's law. They are densities of y (with the Jacobian),
so the information criterion compares them (Schwarz 1978).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Mask, Test
from perflaw.learn.annotations.moments import Fits, Moments
from perflaw.learn.annotations.table import MOST_LEVELS, PREFERENCE, Column
from perflaw.learn.annotations.words import between

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
    for column in field.columns:
        some, count = _of_column(field, column)
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


def _of_column(field: Field, column: Column) -> tuple[Split | None, int]:
    """Best split by one column, and how many were looked at: thresholds on a grid, then finer around the best one."""
    if column.kind in ("category", "branch", "edge"):
        parts = _levels(field, column) if column.kind == "category" else _above_zero(field, column)
        return _best(field, column, *parts)[0], len(parts[1])
    values = np.asarray(column.values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cuts = _changes(values[order], field.fewest)
    tried = cuts.size
    while True:
        chosen = _spread(cuts)
        best, place = _best(field, column, *_below(field, column, order, chosen))
        if best is None or chosen.size == cuts.size:
            return best, tried
        low, high = chosen[max(place - 1, 0)], chosen[min(place + 1, chosen.size - 1)]
        cuts = cuts[(cuts >= low) & (cuts <= high)]


def _changes(ordered: Array, fewest: int) -> NDArray[np.intp]:
    """Places where values change, with enough records on both sides."""
    cuts = np.flatnonzero(np.diff(ordered)) + 1
    return cuts[(cuts >= fewest) & (cuts <= ordered.size - fewest)]


def _spread(cuts: NDArray[np.intp]) -> NDArray[np.intp]:
    if cuts.size <= CUTS:
        return cuts
    return cuts[np.unique(np.linspace(0, cuts.size - 1, CUTS).astype(np.intp))]


Parts = tuple[Array, list[Test]]
"""Sums of the parts where a test holds, (C, …), and the tests."""


def _below(field: Field, column: Column, order: NDArray[np.intp], cuts: NDArray[np.intp]) -> Parts:
    """Parts below thresholds."""
    if not cuts.size:
        return np.zeros((0, field.moments.products.shape[1])), []
    sums = field.moments.sums(order, np.r_[0, cuts])
    values = np.asarray(column.values, dtype=np.float64)[order]
    tests = [threshold(column.name, float(values[cut - 1]), float(values[cut])) for cut in cuts]
    return np.cumsum(sums, axis=0)[:-1], tests


def threshold(name: str, low: float, high: float) -> Test:
    """The test that holds up to ``low`` and from ``high`` on not, by a round number."""
    value = between(low, high)
    return Test(name, "<", value) if value == high else Test(name, "<=", value)


def _levels(field: Field, column: Column) -> Parts:
    """Parts of one level of a category each."""
    levels, code, count = np.unique(column.values, return_inverse=True, return_counts=True)
    order = np.argsort(code, kind="stable")
    sums = field.moments.sums(order, np.r_[0, np.cumsum(count)[:-1]])
    n = int(count.sum())
    fine = [i for i in np.argsort(-count, kind="stable")[:MOST_LEVELS] if _enough(int(count[i]), n, field.fewest)]
    fine = [int(i) for i in fine if str(levels[i])]
    return sums[fine], [Test(column.name, "==", str(levels[i])) for i in fine]


def _above_zero(field: Field, column: Column) -> Parts:
    """The part in which something happened at all."""
    happened = np.asarray(column.values, dtype=np.float64) > 0
    if not _enough(int(happened.sum()), happened.size, field.fewest):
        return np.zeros((0, field.moments.products.shape[1])), []
    return field.moments.products[happened].sum(axis=0, keepdims=True), [Test(column.name, ">", 0.0, counts=True)]


def _enough(inside: int, n: int, fewest: int) -> bool:
    return fewest <= inside <= n - fewest


def _best(field: Field, column: Column, sums: Array, tests: list[Test]) -> tuple[Split | None, int]:
    """The best of some parts against the rest, and its place."""
    if not tests:
        return None, 0
    inside = field.moments.fits(sums, field.worth)
    outside = field.moments.fits(field.moments.products.sum(axis=0) - sums, field.worth)
    parameters = inside.parameters + outside.parameters + (0.0 if column.kind == "category" else 1.0)
    rss = inside.rss + outside.rss
    criterion = field.criterion(rss, parameters)
    place, response = np.unravel_index(int(criterion.argmin()), criterion.shape)
    bases = int(inside.basis[place, response]), int(outside.basis[place, response])
    found = float(criterion[place, response]), float(rss[place, response]), int(response)
    return Split(tests[place], column, *found, bases), int(place)


def sides(field: Field, split: Split) -> Mask:
    """Where the test of a split holds, (n,)."""
    return split.test.holds({split.column.name: split.column.values})
