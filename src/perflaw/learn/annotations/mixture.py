"""Algorithm 2 of Freud (§3.2): clusters of the costs, a law for each, and how probable each is.

Clusters are searched in y and in y divided by a feature (x, x log x, x²) or by the law's mean: if one of several modes
follows a feature, its records are close together there and nowhere else. Of these views the one of least entropy is taken.

A mixture says that a call behaves one way or another by chance. So clusters nearer to each other than a call is
measured, or than matters to anyone, are one mode; so are clusters that two speeds of the machine make; and if runs or
inputs decide which cluster a record is in, there is no mixture, because its probabilities say nothing of the next call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.call_laws import cell_series, is_good
from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.annotations.records import RecordTable, select
from perflaw.learn.annotations.together import LawSearch
from perflaw.learn.annotations.tree import TreeNode
from perflaw.learn.cells import make_cells
from perflaw.learn.modes import cluster_labels, distinct_borders, find_borders, paper_borders
from perflaw.learn.series import Learnt, Series
from perflaw.learn.ways import ways_of

Array = NDArray[np.float64]
Indexes = NDArray[np.intp]

MIN_SCATTER = 0.1
"""Relative scatter about a law below which modes matter to nobody."""
MANY_MODES, MODERATE_R2 = 3, 0.4
"""More modes than the first are a mixture only if the law of all records explains less than the second."""
ROUNDS = 3
"""Largest number of modes of a feature, and of rounds in which the records of one are found."""
CLOSE, MIN_SCALE = 4.0, 1e-3
"""Records within so many standard deviations of a law follow it; the deviation is at least the second, relative."""
MIN_ENTROPY_GAIN = 20.0
"""Twice the log likelihood that a view over a feature gains at least over y itself."""
MIN_MODE_RATIO = 1.1
"""Neighbouring modes within this factor are one mode: the difference matters to nobody."""
MAX_BY_RUN = 0.5
"""Share of a cluster's membership that runs may explain; above it clusters are runs, not modes."""
SPEED_RATIO, MAX_BY_SPEED = 2.0, 0.2
"""Modes within this factor may be speeds of the machine: then runs may explain this share at most."""
MAX_BY_INPUT = 0.5
"""Share of the membership of all clusters that the values of a feature may explain; above it clusters are inputs."""
MIN_VALUES, RECORDS_A_VALUE = 3, 4
"""Number of values of a feature that may explain clusters, and of records that each value has on average."""


@dataclass(frozen=True, slots=True, eq=False)
class MixtureMode:
    """One of several modes."""

    probability: float
    """Share of the invocations."""
    mask: Mask
    """Its records, (n,) of the component's."""
    learnt: Learnt
    """Its law."""


def learn_mixture(node: TreeNode, options: AnnotationOptions) -> LawSearch[list[MixtureMode] | None]:
    """The modes of a node whose law is not good, the most probable first; None for a single mode."""
    residuals, law = node.residuals, node.learnt.law
    if residuals is None or residuals.scatter < MIN_SCATTER or residuals.r2 >= options.good_r2:
        return None
    masks = yield from _clusters(node, node.mask, options, ROUNDS)
    # Of many modes a reader learns less than from a law that explains much.
    if len(masks) < 2 or (len(masks) > MANY_MODES and law.verdict == "law" and residuals.r2 >= MODERATE_R2):
        return None
    weight = node.table.evidence.weight
    total = float(weight[node.mask].sum())
    laws = yield from _learn_modes(node, masks, options)
    modes = [
        MixtureMode(float(f"{weight[mask].sum() / total:.6g}"), mask, learnt)
        for mask, learnt in zip(masks, laws, strict=True)
    ]
    return sorted(modes, key=lambda mode: -mode.probability)


def _learn_modes(node: TreeNode, masks: Sequence[Mask], options: AnnotationOptions) -> LawSearch[list[Learnt]]:
    """The law of each cluster: one of features if that is good, else a constant, of its single records."""
    evidence = node.table.evidence
    name = evidence.component.name
    parts = [select(evidence, mask) for mask in masks]
    of_features = [cell_series(evidence, make_cells(part, node.table.preferred), options) for part in parts]
    ways = ways_of([cost.run for cost in evidence.runs])
    constant = [Series(name, part.cost, {}, part.run, part.weight, options.quantum, ways=ways) for part in parts]
    learnt = yield [*of_features, *constant]
    pairs = zip(learnt[: len(masks)], learnt[len(masks) :], strict=True)
    return [dependent if is_good(dependent, options) else alone for dependent, alone in pairs]


def _clusters(node: TreeNode, mask: Mask, options: AnnotationOptions, rounds: int) -> LawSearch[list[Mask]]:
    """Records by mode: those that follow a feature are taken out first, then the others are searched again."""
    rows = np.flatnonzero(mask)
    if rows.size < 2 * options.fewest or rounds == 0:
        return [mask]
    y = node.table.evidence.cost[rows]
    if options.paper:
        return _by_label(mask, rows, cluster_labels(y, paper_borders(y)))
    log_divisor = _best_divisor(node, rows, y)
    if log_divisor is not None:
        log_view = np.log(y) - log_divisor
        resolution = options.resolution / float(np.exp(np.median(log_divisor)))
        parts = _modes(node.table, mask, rows, np.exp(log_view), 0.0, resolution)
        if len(parts) > 1:
            cores = [_core(one, log_view, rows) for one in parts]
            follow = yield from _followers(node, mask, cores, options)
            if follow is not None:
                others = yield from _clusters(node, mask & ~follow, options, rounds - 1)
                return [follow, *others]
    return _modes(node.table, mask, rows, y, options.quantum, options.resolution)


def _best_divisor(node: TreeNode, rows: Indexes, y: Array) -> Array | None:
    """Logarithm of what y is divided by in the view of least entropy, (n,); None for y itself."""
    if (y <= 0).any():
        return None
    log_y = np.log(y)
    least, best = _entropy(log_y), None
    margin = MIN_ENTROPY_GAIN / 2.0 / y.size
    for log_divisor in _divisors(node, rows):
        entropy = _entropy(log_y - log_divisor)
        if entropy < least - (margin if best is None else 0.0):
            least, best = entropy, log_divisor
    return best


def _divisors(node: TreeNode, rows: Indexes) -> Iterator[Array]:
    """Logarithms of what y may be divided by, (n,) each: the law's mean, and functions of the features."""
    law = node.learnt.law
    inputs = {column.name: column.numbers[rows] for column in node.table.columns if column.is_input}
    if law.features and all(name in inputs for name in law.features):
        mean = node.learnt.mean({name: np.nan_to_num(inputs[name]) for name in law.features})
        if (mean > 0).all():
            yield np.log(mean)
    for x in inputs.values():
        if not np.isnan(x).any() and (x > 0).all() and np.ptp(x) > 0:
            log = np.log(x)
            yield from (log, log + np.log(np.maximum(log, 0.1)), 2.0 * log)


def _entropy(values: Array) -> float:
    """Differential entropy by spacings of order m = √n (Vasicek 1976); spacings are at least a thousandth."""
    ordered = np.sort(values)
    m = max(int(np.sqrt(ordered.size)), 1)
    return float(np.log(np.maximum(ordered[2 * m :] - ordered[: -2 * m], 1e-3)).mean())


def _modes(table: RecordTable, mask: Mask, rows: Indexes, view: Array, tick: float, resolution: float) -> list[Mask]:
    """Records by the clusters of a view (n,) that are modes; all of them together if there is only one."""
    borders = find_borders(view, tick, table.evidence.weight[rows], resolution=resolution)
    borders = distinct_borders(view, borders, resolution, MIN_MODE_RATIO)
    run = table.run[rows]
    borders = borders[[not _between_speeds(view, borders, i, run) for i in range(borders.size)]]
    label = cluster_labels(view, borders)
    if borders.size:
        enough = label.size >= 5 * np.unique(run).size
        by_runs = enough and max(_explained_share(label == number, run) for number in np.unique(label)) > MAX_BY_RUN
        if by_runs or _explained_by_inputs(label, table, rows):
            label = np.zeros_like(label)
    return _by_label(mask, rows, label)


def _by_label(mask: Mask, rows: Indexes, label: Indexes) -> list[Mask]:
    """Masks of the records of each label; ``label`` (n,) belongs to the records ``rows`` of the mask."""
    masks = []
    for number in np.unique(label):
        masks.append(np.zeros(mask.size, dtype=bool))
        masks[-1][rows[label == number]] = True
    return masks


def _between_speeds(view: Array, borders: Array, i: int, run: Indexes) -> bool:
    """Whether the clusters beside a border differ as two speeds of a machine do, and depend on the run."""
    label = cluster_labels(view, borders)
    near = (label == i) | (label == i + 1)
    low, high = (float(np.median(view[label == side])) for side in (i, i + 1))
    return 0 < high < SPEED_RATIO * low and _explained_share((label[near] == i), run[near]) > MAX_BY_SPEED


def _explained_by_inputs(label: Indexes, table: RecordTable, rows: Indexes) -> bool:
    """Whether the value of a number decides the cluster: the same few inputs, or counts within the call, come again."""
    for column in table.columns:
        if column.kind == "category":
            continue
        values, group = np.unique(column.values[rows], return_inverse=True)
        if not MIN_VALUES <= values.size <= label.size / RECORDS_A_VALUE:
            continue
        # What as many groups explain by chance is taken out (Goodman & Kruskal's τ, adjusted).
        correction = (label.size - 1) / (label.size - values.size)
        members = [label == number for number in np.unique(label)]
        variance = np.array([member.var() for member in members])
        unexplained = variance @ [1.0 - _explained_share(member, group) for member in members] / variance.sum()
        if 1.0 - unexplained * correction > MAX_BY_INPUT:
            return True
    return False


def _explained_share(member: NDArray[np.bool_], group: Indexes) -> float:
    """Share of the variance of a membership (n,) that groups (n,) explain; 0 for a single group."""
    size = np.bincount(group)
    total = float(member.var())
    if np.count_nonzero(size) < 2 or total == 0:
        return 0.0
    means = np.bincount(group, member) / np.maximum(size, 1)
    return float(((means[group] - member.mean()) ** 2).mean()) / total


def _core(mask: Mask, view: Array, rows: Indexes) -> Mask:
    """The half of a cluster that lies closest together in a view (Grübel's shorth)."""
    member = np.flatnonzero(mask[rows])
    order = member[np.argsort(view[member], kind="stable")]
    half = max(order.size // 2, 1)
    values = view[order]
    start = int(np.argmin(values[half:] - values[:-half])) if order.size > half else 0
    core = np.zeros(mask.size, dtype=bool)
    core[rows[order[start : start + half + 1]]] = True
    return core


def _followers(node: TreeNode, mask: Mask, clusters: list[Mask], options: AnnotationOptions) -> LawSearch[Mask | None]:
    """All records close to the law of the largest cluster whose law has features; None if none has."""
    for cluster in sorted(clusters, key=lambda one: -int(one.sum())):
        if np.count_nonzero(cluster) < options.fewest // 2:
            continue
        near = cluster
        for _ in range(ROUNDS):
            [learnt] = yield from _learn_modes(node, [near], options)
            if not learnt.law.features:
                break
            deviation = np.abs(_log_deviation(node, learnt))
            scale = max(1.4826 * float(np.median(deviation[near])), MIN_SCALE)
            before, near = near, mask & (deviation <= CLOSE * scale)
            if (near == before).all():
                break
        else:
            [learnt] = yield from _learn_modes(node, [near], options)
        count = np.count_nonzero(near)
        if learnt.law.features and options.fewest <= count <= np.count_nonzero(mask) - options.fewest:
            run = node.table.run[mask]
            # The records near the law and the others may differ as two speeds of a machine do.
            deviation, close = _log_deviation(node, learnt)[mask], near[mask]
            distance = float(np.abs(np.median(deviation[~close]) - np.median(deviation[close])))
            by_run = distance < np.log(SPEED_RATIO) and _explained_share(close, run) > MAX_BY_SPEED
            return None if distance < np.log(MIN_MODE_RATIO) or by_run else near
    return None


def _log_deviation(node: TreeNode, learnt: Learnt) -> Array:
    """Log y − log mean of every record, (n,); infinite if a feature of the law was not read."""
    y = node.table.evidence.cost
    at = {name: node.table.numbers(name) for name in learnt.law.features}
    read = np.logical_and.reduce([~np.isnan(values) for values in at.values()])
    mean = learnt.mean({name: np.nan_to_num(values) for name, values in at.items()})
    return np.where(read, np.log(np.maximum(y, 1e-9)) - np.log(np.maximum(mean, 1e-9)), np.inf)
