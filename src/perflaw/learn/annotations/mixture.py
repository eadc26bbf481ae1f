"""Algorithm 2 of Freud (§3.2): clusters of the responses, a law for each, and how probable each is.

Clusters are looked for in y and in y over a feature (x, x log x, x²): where one of several behaviours follows a feature, its
records are close together there and nowhere else. Of these views the one of least entropy is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.relevant import learn_relevant
from perflaw.learn.annotations.table import AnnotationOptions, Table, part_of
from perflaw.learn.annotations.tree import Node
from perflaw.learn.cells import make_cells
from perflaw.learn.modes import apart, borders, density_minima, labels
from perflaw.learn.series import Learnt, Series

# ---- What responses are looked at over, where one of several behaviours follows a feature: the view of least
# entropy.

BETTER = 20.0
"""Twice the log likelihood that a view over a feature gains at least over y itself."""


def best_view(node: Node, rows: NDArray[np.intp], y: Array) -> Array | None:
    """Logarithm of what y is looked at over, (n,); None for y itself."""
    if (y <= 0).any():
        return None
    log_y = np.log(y)
    least, best = _entropy(log_y), None
    margin = BETTER / 2.0 / y.size
    for over in _scales(node, rows):
        entropy = _entropy(log_y - over)
        if entropy < least - (margin if best is None else 0.0):
            least, best = entropy, over
    return best


def _scales(node: Node, rows: NDArray[np.intp]) -> Iterator[Array]:
    """Logarithms of what y may be over: the law's mean, and functions of the features."""
    law = node.learnt.law
    columns = {
        c.name: np.asarray(c.values, np.float64)[rows] for c in node.table.columns if c.kind in ("feature", "run")
    }
    if law.features and all(name in columns for name in law.features):
        mean = node.learnt.mean({name: np.nan_to_num(columns[name]) for name in law.features})
        if (mean > 0).all():
            yield np.log(mean)
    for x in columns.values():
        if not np.isnan(x).any() and (x > 0).all() and np.ptp(x) > 0:
            log = np.log(x)
            yield from (log, log + np.log(np.maximum(log, 0.1)), 2.0 * log)


def _entropy(values: Array) -> float:
    """Differential entropy by spacings of order m = √n (Vasicek 1976), those below a thousandth as one."""
    ordered = np.sort(values)
    m = max(int(np.sqrt(ordered.size)), 1)
    spacing = np.maximum(ordered[2 * m :] - ordered[: -2 * m], 1e-3)
    return float(np.log(spacing).mean())


# ---- Which clusters of responses are behaviours: not those of the measurement, the machine, the runs or the inputs.
#
# A mixture says that a call behaves one way or another by chance. Clusters nearer to each other than a call is
# measured, or
# than matters to anyone, are one behaviour; so are those that a machine of two speeds makes of one; and where runs or
# inputs
# decide which cluster a record is in, its probability says nothing of the next call.

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


Array = NDArray[np.float64]

MIN_SCATTER = 0.1
"""Relative scatter about a law below which modes matter to nobody."""
MANY, HALF = 3, 0.4
"""More behaviours than that are told only where the law of all explains a smaller part of the variance than this."""
ROUNDS = 3
"""How often records that follow a feature are taken out at most."""
CLOSE, LEAST_SCALE = 4.0, 1e-3
"""Records belong to a law within so many standard deviations of it, of at least that relative size."""


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """One of several behaviours."""

    probability: float
    """Share of the invocations."""
    mask: Mask
    """Which records it is seen in, (n,) of the component's."""
    learnt: Learnt
    """Its law."""


def mixture(node: Node, quantum: float, options: AnnotationOptions) -> list[Share] | None:
    """The behaviours of a part whose law is not good, the most probable first; None where there is one alone."""
    part = node.part
    if part is None or part.scatter < MIN_SCATTER or part.r2 >= options.good_r2:
        return None
    masks = _clusters(node, node.mask, quantum, options, ROUNDS)
    if len(masks) < 2 or (len(masks) > MANY and _half_told(node)):
        return None
    laws = _laws(node, masks, quantum, options)
    weight = node.table.evidence.weight
    total = float(weight[node.mask].sum())
    found = [
        Share(float(f"{weight[one].sum() / total:.6g}"), one, learnt) for one, learnt in zip(masks, laws, strict=True)
    ]
    return sorted(found, key=lambda share: -share.probability)


def _half_told(node: Node) -> bool:
    """Whether the law of all records explains much: a reader learns more from it than from many modes."""
    return node.learnt.law.verdict == "law" and node.part is not None and node.part.r2 >= HALF


def _clusters(node: Node, mask: Mask, quantum: float, options: AnnotationOptions, rounds: int) -> list[Mask]:
    """Records by behaviour: those that follow a feature are taken out first, the rest is looked at again."""
    rows = np.flatnonzero(mask)
    if rows.size < 2 * options.fewest or rounds == 0:
        return [mask]
    y = node.table.evidence.cost[rows]
    over = None if options.paper else best_view(node, rows, y)
    if over is None:
        return _of_y(node, mask, quantum, options)
    resolution = options.resolution / float(np.exp(np.median(over)))
    masks = _parts(node, rows, np.exp(np.log(y) - over), 0.0, resolution)
    if len(masks) < 2:
        return _of_y(node, mask, quantum, options)
    follows = _followers(node, mask, [_core(one, np.log(y) - over, rows) for one in masks], quantum, options)
    if follows is None:
        return _of_y(node, mask, quantum, options)
    return [follows, *_clusters(node, mask & ~follows, quantum, options, rounds - 1)]


def _of_y(node: Node, mask: Mask, quantum: float, options: AnnotationOptions) -> list[Mask]:
    """Records by clusters of y itself."""
    rows = np.flatnonzero(mask)
    y = node.table.evidence.cost[rows]
    if options.paper:
        return _labelled(node, rows, labels(y, density_minima(y)))
    return _parts(node, rows, y, quantum, options.resolution)


def _parts(node: Node, rows: NDArray[np.intp], view: Array, tick: float, resolution: float) -> list[Mask]:
    """Records by clusters of a view (n,) of theirs, those that are behaviours; all of them where there is one."""
    found = borders(view, tick, node.table.evidence.weight[rows], resolution=resolution)
    found = told_apart(view, found, resolution, node.table, rows)
    return _labelled(node, rows, labels(view, found))


def _labelled(node: Node, rows: NDArray[np.intp], label: NDArray[np.intp]) -> list[Mask]:
    return [_mask(node, rows, label == i) for i in np.unique(label)]


def _core(mask: Mask, view: Array, rows: NDArray[np.intp]) -> Mask:
    """The half of a cluster that lies closest together in a view (Grübel's shorth)."""
    member = np.flatnonzero(mask[rows])
    order = member[np.argsort(view[member], kind="stable")]
    half = max(order.size // 2, 1)
    values = view[order]
    start = int(np.argmin(values[half:] - values[:-half])) if order.size > half else 0
    out = np.zeros(mask.size, dtype=bool)
    out[rows[order[start : start + half + 1]]] = True
    return out


def _followers(node: Node, mask: Mask, masks: list[Mask], quantum: float, options: AnnotationOptions) -> Mask | None:
    """All records close to the law of the largest cluster that has one of features; None where none has."""
    for one in sorted(masks, key=lambda one: -int(one.sum())):
        if np.count_nonzero(one) < options.fewest // 2:
            continue
        near = one
        for _ in range(ROUNDS):
            [learnt] = _laws(node, [near], quantum, options)
            if not learnt.law.features:
                break
            deviation = np.abs(_deviation(node, learnt))
            scale = max(1.4826 * float(np.median(deviation[near])), LEAST_SCALE)
            before, near = near, mask & (deviation <= CLOSE * scale)
            if (near == before).all():
                break
        else:
            learnt = _laws(node, [near], quantum, options)[0]
        count = np.count_nonzero(near)
        if learnt.law.features and options.fewest <= count <= np.count_nonzero(mask) - options.fewest:
            return None if two_speeds(_deviation(node, learnt)[mask], near[mask], node.table.run[mask]) else near
    return None


def _deviation(node: Node, learnt: Learnt) -> Array:
    """Log y − log mean of every record, (n,); infinite where the law's feature was not read."""
    named, y = node.table.named, node.table.evidence.cost
    at = {name: np.asarray(named[name], dtype=np.float64) for name in learnt.law.features}
    known = np.logical_and.reduce([~np.isnan(values) for values in at.values()])
    mean = learnt.mean({name: np.nan_to_num(values) for name, values in at.items()})
    out = np.log(np.maximum(y, 1e-9)) - np.log(np.maximum(mean, 1e-9))
    return np.where(known, out, np.inf)


def _laws(node: Node, masks: Sequence[Mask], quantum: float, options: AnnotationOptions) -> list[Learnt]:
    """The law of each cluster: one of features where that is good, else input-independent, of its single records."""
    evidence = node.table.evidence
    parts = [part_of(evidence, mask) for mask in masks]
    cells = [make_cells(part, node.table.preferred) for part in parts]
    name = evidence.component.name
    of_features = [Series(name, one.y, one.features, one.run, quantum=quantum) for one in cells]
    alone = [Series(name, part.cost, {}, part.run, part.weight, quantum) for part in parts]
    found, _ = learn_relevant([*of_features, *alone], options)
    pairs = zip(found[: len(masks)], found[len(masks) :], strict=True)
    return [dependent if _good(dependent, options) else constant for dependent, constant in pairs]


def _good(learnt: Learnt, options: AnnotationOptions) -> bool:
    law = learnt.law
    return bool(law.features) and law.verdict == "law" and (law.r2 or 0.0) >= options.good_r2


def _mask(node: Node, rows: NDArray[np.intp], member: Mask) -> Mask:
    mask = np.zeros(node.mask.size, dtype=bool)
    mask[rows[member]] = True
    return mask
