"""Laws found on selected records (Freud §3.2, "Further Refinements"): additive noise removed, or the main trend alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.monotone import most_explained
from perflaw.learn.annotations.options import Options
from perflaw.learn.annotations.relevant import learn_relevant
from perflaw.learn.annotations.tree import Node
from perflaw.learn.laws import Learnt, Series
from perflaw.learn.modes import borders, labels
from perflaw.types import Metric

Array = NDArray[np.float64]

NOISE_REMOVED, MAIN_TREND = "noise removed", "main trend"
FEWEST_VALUES, FEWEST_EACH = 6, 5
"""Values of a feature, and records of each, that make a selection worth trying."""
MOST = 0.5
"""Share of the records that have such values at least."""
TELLING = 0.5
"""R² from which the law of all records is told rather than one of selected records."""
DOMINANT = 0.5
"""Share of the records that the dominant cluster holds at least."""
ROUNDING = 1e-6
"""R² that two ways to sum squares differ by at most."""


def cleaned(node: Node, metric: Metric, quantum: float, options: Options) -> tuple[Learnt, str] | None:
    """A good law of selected records and what was done, where the law of all records is not good; else None."""
    part, law = node.part, node.learnt.law
    if part is None or part.r2 >= options.good_r2 or (law.features and (law.r2 or 0.0) >= TELLING):
        return None
    groups = list(_groups(node))
    series: list[tuple[Series, str]] = []
    for name, x, y, group in groups:
        if metric.unit == "ns":
            series.append((_series(node, name, *_least(x, y, group), quantum), NOISE_REMOVED))
    for name, x, y, group in groups:
        kept = _dominant(y, group)
        if kept is not None:
            series.append((_series(node, name, *_means(x[kept], y[kept], group[kept]), quantum), MAIN_TREND))
    series = [one for one in series if _may_be_good(one[0], options)]
    found, _ = learn_relevant([one for one, _ in series], options)
    good = [(learnt, mark) for learnt, (_, mark) in zip(found, series, strict=True) if _good(learnt, options)]
    return max(good, key=lambda one: one[0].law.r2 or 0.0) if good else None


def _good(learnt: Learnt, options: Options) -> bool:
    law = learnt.law
    return bool(law.features) and law.verdict == "law" and (law.r2 or 0.0) >= options.good_r2


def _may_be_good(series: Series, options: Options) -> bool:
    """Whether a law can explain enough, seen at a fraction of the cost of learning it; zeros have laws of their own."""
    if options.paper or (series.y == 0).any() or series.y.size < 2:
        return True
    (x,) = series.features.values()
    return most_explained(x, series.y) >= options.good_r2 - ROUNDING


def _groups(node: Node) -> Iterator[tuple[str, Array, Array, NDArray[np.intp]]]:
    """Features of few values with records grouped by them: name, x, y, number of the group, (n,) each."""
    rows = np.flatnonzero(node.mask)
    y = node.table.evidence.cost[rows]
    for column in node.table.columns:
        if column.kind not in ("feature", "run"):
            continue
        x = np.asarray(column.values, dtype=np.float64)[rows]
        read = ~np.isnan(x)
        _, group, count = np.unique(x[read], return_inverse=True, return_counts=True)
        if np.count_nonzero(count >= FEWEST_EACH) < FEWEST_VALUES:
            continue
        enough = (count >= FEWEST_EACH)[group]
        if enough.mean() < MOST:
            continue
        renumbered = np.unique(group[enough], return_inverse=True)[1]
        yield column.name, x[read][enough], y[read][enough], renumbered.reshape(-1)


def _least(x: Array, y: Array, group: NDArray[np.intp]) -> tuple[Array, Array]:
    """The smallest cost of each group."""
    order = np.lexsort((y, group))
    first = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    return x[order][first], y[order][first]


def _means(x: Array, y: Array, group: NDArray[np.intp]) -> tuple[Array, Array]:
    number = np.unique(group, return_inverse=True)[1].reshape(-1)
    size = np.bincount(number)
    return np.bincount(number, x) / size, np.bincount(number, y) / size


def _dominant(y: Array, group: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Records of the cluster that holds most, among costs relative to their group's median; None where there is one."""
    if (y <= 0).any():
        return None
    order = np.lexsort((y, group))
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    size = np.diff(np.r_[starts, y.size])
    median = y[order][starts + (size - 1) // 2]
    relative = y / median[group]
    found = borders(relative)
    if not found.size:
        return None
    label = labels(relative, found)
    count = np.bincount(label)
    return label == int(count.argmax()) if count.max() >= DOMINANT * y.size else None


def _series(node: Node, name: str, x: Array, y: Array, quantum: float) -> Series:
    return Series(node.table.evidence.component.name, y, {name: x}, None, None, quantum)
