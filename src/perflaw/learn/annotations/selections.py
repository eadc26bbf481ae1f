"""Laws of selected records (Freud §3.2, "Further Refinements"): additive noise removed, or the main trend alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.call_laws import is_good
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.annotations.together import LawSearch
from perflaw.learn.annotations.tree import TreeNode
from perflaw.learn.cells import Array
from perflaw.learn.modes import cluster_labels, find_borders
from perflaw.learn.series import Learnt, Series
from perflaw.learn.ways import ways_of

NOISE_REMOVED, MAIN_TREND = "noise removed", "main trend"
"""The two selections, as an annotation names them."""
MIN_VALUES, RECORDS_A_VALUE = 6, 5
"""Number of values of a feature, and of records of each, that make a selection worth trying."""
MIN_SHARE = 0.5
"""Smallest share of the records that have such values."""
ENOUGH_R2 = 0.5
"""R² from which on the law of all records is preferred to one of selected records."""
DOMINANT = 0.5
"""Smallest share of the records in the dominant cluster."""
ROUNDING = 1e-6
"""Largest difference of R² between two ways to sum squares."""
Groups = tuple[str, Array, Array, NDArray[np.intp]]
"""Feature, its values (n,), costs (n,), and number of the group of equal values of each record, (n,)."""


def learn_selection(node: TreeNode, options: AnnotationOptions) -> LawSearch[tuple[Learnt, str] | None]:
    """A good law of selected records and the name of the selection; None if the law of all records is good enough."""
    residuals, law = node.residuals, node.learnt.law
    if residuals is None or residuals.r2 >= options.good_r2 or (law.features and (law.r2 or 0.0) >= ENOUGH_R2):
        return None
    component = node.table.evidence.component.name
    ways = ways_of([cost.run for cost in node.table.evidence.runs])

    def series(name: str, x: Array, y: Array) -> Series:
        return Series(component, y, {name: x}, None, None, options.quantum, ways=ways)

    groups = list(_groups(node))
    candidates: list[tuple[Series, str]] = []
    for name, x, y, group in groups:
        if options.metric.unit == "ns":
            # Noise that only adds to a cost is removed by the smallest cost of each group.
            order = np.lexsort((y, group))
            first = order[np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])]
            candidates.append((series(name, x[first], y[first]), NOISE_REMOVED))
    for name, x, y, group in groups:
        kept = _dominant(y, group)
        if kept is not None:
            number = np.unique(group[kept], return_inverse=True)[1].reshape(-1)
            size = np.bincount(number)
            means = np.bincount(number, x[kept]) / size, np.bincount(number, y[kept]) / size
            candidates.append((series(name, *means), MAIN_TREND))
    candidates = [(one, mark) for one, mark in candidates if _may_be_good(one, options)]
    learnt = yield [one for one, _ in candidates]
    good = [(law, mark) for law, (_, mark) in zip(learnt, candidates, strict=True) if is_good(law, options)]
    return max(good, key=lambda pair: pair[0].law.r2 or 0.0) if good else None


def _groups(node: TreeNode) -> Iterator[Groups]:
    """Inputs of few values, with the records that have a frequent value."""
    rows = np.flatnonzero(node.mask)
    y = node.table.evidence.cost[rows]
    for column in node.table.columns:
        if not column.is_input:
            continue
        x = column.numbers[rows]
        read = ~np.isnan(x)
        _, group, count = np.unique(x[read], return_inverse=True, return_counts=True)
        if np.count_nonzero(count >= RECORDS_A_VALUE) < MIN_VALUES:
            continue
        frequent = (count >= RECORDS_A_VALUE)[group]
        if frequent.mean() >= MIN_SHARE:
            number = np.unique(group[frequent], return_inverse=True)[1].reshape(-1)
            yield column.name, x[read][frequent], y[read][frequent], number


def _dominant(y: Array, group: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Records of the largest cluster of the costs relative to their group's median; None for a single cluster."""
    if (y <= 0).any():
        return None
    order = np.lexsort((y, group))
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    size = np.diff(np.r_[starts, y.size])
    relative = y / y[order][starts + (size - 1) // 2][group]
    borders = find_borders(relative)
    if not borders.size:
        return None
    label = cluster_labels(relative, borders)
    count = np.bincount(label)
    return label == int(count.argmax()) if count.max() >= DOMINANT * y.size else None


def _may_be_good(series: Series, options: AnnotationOptions) -> bool:
    """Whether some law can explain enough, at a fraction of the cost of learning it; zeros have laws of their own."""
    if options.paper or (series.y == 0).any() or series.y.size < 2:
        return True
    (x,) = series.features.values()
    return largest_r2(x, series.y) >= options.good_r2 - ROUNDING


def largest_r2(x: Array, y: Array) -> float:
    """Largest R² that a law of x (n,) can reach for y (n,), of values or of logarithms: x all different, n ≥ 2.

    Every law of one feature is a rising or falling curve. The best such curve is found by isotonic regression
    (Robertson, Wright & Dykstra 1988, §1.4).

    >>> steps = np.arange(20.0)
    >>> largest_r2(steps, steps**2), round(largest_r2(steps, np.cos(3.0 * steps)), 2)
    (1.0, 0.11)
    """
    ordered = y[np.argsort(x, kind="stable")]
    r2 = []
    for scale in [ordered, np.log(ordered)] if (y > 0).all() else [ordered]:
        for side in (scale, -scale):
            centred = side - side.mean()
            total = float(centred @ centred)
            left = float(((centred - rising_curve(centred)) ** 2).sum())
            r2.append(1.0 - left / total if total > 0 else 1.0)
    return max(r2)


def rising_curve(y: Array) -> Array:
    """The curve nearest to y (n,) that never falls: the largest of the least means from a place on (max-min formula).

    >>> rising_curve(np.array([1.0, 3.0, 2.0, 5.0])).tolist()
    [1.0, 2.5, 2.5, 5.0]
    """
    n = y.size
    sums = np.concatenate([np.zeros(1), np.cumsum(y)])
    width = np.arange(1, n + 1) - np.arange(n)[:, None]
    means = np.where(width > 0, (sums[1:] - sums[:-1, None]) / np.maximum(width, 1), np.inf)
    least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    within = np.where(width > 0, least, -np.inf)
    return np.maximum.accumulate(within, axis=0)[np.arange(n), np.arange(n)]
