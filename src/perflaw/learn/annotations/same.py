"""Which clusters of responses are behaviours: not those of the measurement, the machine, the runs or the inputs.

A mixture says that a call behaves one way or another by chance. Clusters nearer to each other than a call is measured, or
than matters to anyone, are one behaviour; so are those that a machine of two speeds makes of one; and where runs or inputs
decide which cluster a record is in, its probability says nothing of the next call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.table import Table
from perflaw.learn.modes import apart, labels

Array = NDArray[np.float64]

RELEVANT = 1.1
"""Neighbouring modes within this factor are one: the difference matters to nobody."""
BY_RUN = 0.5
"""Share of a cluster's membership that runs may explain: above it clusters are runs, not behaviours."""
SPEEDS, BY_SPEED = 2.0, 0.2
"""Modes within this factor may be speeds of the machine: then runs may explain this share at most."""
BY_INPUT = 0.5
"""Share of the membership of all clusters that the values of a feature may explain: above it clusters are inputs."""
FEWEST_VALUES, RECORDS_A_VALUE = 3, 4
"""Values of a feature that may explain clusters, and records that each has at least on average."""


def told_apart(view: Array, found: Array, resolution: float, table: Table, rows: NDArray[np.intp]) -> Array:
    """Those borders (k,) between clusters of a view (n,) of the table's ``rows`` that part behaviours; none or several."""
    found = apart(view, found, resolution, RELEVANT)
    run = table.run[rows]
    found = found[[not _speeds(view, found, i, run) for i in range(found.size)]]
    if found.size:
        label = labels(view, found)
        if _explained_by_runs(label, run) or _explained_by_inputs(label, table, rows):
            return found[:0]
    return found


def _speeds(view: Array, found: Array, i: int, run: NDArray[np.intp]) -> bool:
    """Whether the clusters beside a border differ as a machine's speeds do, and come by runs."""
    label = labels(view, found)
    near = (label == i) | (label == i + 1)
    low, high = (float(np.median(view[label == side])) for side in (i, i + 1))
    return 0 < high < SPEEDS * low and _share((label[near] == i), run[near]) > BY_SPEED


def two_speeds(deviation: Array, near: NDArray[np.bool_], run: NDArray[np.intp]) -> bool:
    """Whether records near a law and the others, by their log deviations from it (n,), differ as a machine's speeds do."""
    away = float(np.abs(np.median(deviation[~near]) - np.median(deviation[near])))
    return away < np.log(RELEVANT) or (away < np.log(SPEEDS) and _share(near, run) > BY_SPEED)


def _explained_by_runs(label: NDArray[np.intp], run: NDArray[np.intp]) -> bool:
    """Whether clusters are runs: then nothing says that they are modes of one behaviour."""
    if label.size < 5 * np.unique(run).size:
        return False
    return max(_share(label == one, run) for one in np.unique(label)) > BY_RUN


def _explained_by_inputs(label: NDArray[np.intp], table: Table, rows: NDArray[np.intp]) -> bool:
    """Whether a number's values decide the clusters: they are a few inputs, or counts of what a call does, again and again."""
    for column in table.columns:
        if column.kind == "category":
            continue
        values, group = np.unique(column.values[rows], return_inverse=True)
        if not FEWEST_VALUES <= values.size <= label.size / RECORDS_A_VALUE:
            continue
        # What as many groups explain by chance is taken out (Goodman & Kruskal's τ, adjusted).
        left = (label.size - 1) / (label.size - values.size)
        clusters = [label == one for one in np.unique(label)]
        variance = np.array([one.var() for one in clusters])
        unexplained = variance @ [1.0 - _share(one, group) for one in clusters] / variance.sum()
        if 1.0 - unexplained * left > BY_INPUT:
            return True
    return False


def _share(member: NDArray[np.bool_], group: NDArray[np.intp]) -> float:
    """Share of the variance of a membership (n,) that groups (n,) explain; 0 where there is one group."""
    size = np.bincount(group)
    total = float(member.var())
    if np.count_nonzero(size) < 2 or total == 0:
        return 0.0
    means = np.bincount(group, member) / np.maximum(size, 1)
    return float(((means[group] - member.mean()) ** 2).mean()) / total
