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
from perflaw.learn.annotations.learning import learn_laws
from perflaw.learn.annotations.options import Options
from perflaw.learn.annotations.table import part_of
from perflaw.learn.annotations.tree import Node
from perflaw.learn.cells import make_cells
from perflaw.learn.laws import Learnt, Series
from perflaw.learn.modes import borders, density_minima, labels

Array = NDArray[np.float64]

MIN_SCATTER = 0.1
"""Relative scatter about a law below which modes matter to nobody."""
BETTER = 20.0
"""Twice the log likelihood that a view over a feature gains at least over y itself."""
BY_RUN = 0.5
"""Share of a cluster's membership that runs may explain: above it clusters are runs, not behaviours."""
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


def mixture(node: Node, quantum: float, options: Options) -> list[Share] | None:
    """The behaviours of a part whose law is not good, the most probable first; None where there is one alone."""
    part = node.part
    if part is None or part.scatter < MIN_SCATTER or part.r2 >= options.good_r2:
        return None
    masks = _clusters(node, node.mask, quantum, options, ROUNDS)
    if len(masks) < 2:
        return None
    laws = _laws(node, masks, quantum, options)
    weight = node.table.evidence.weight
    total = float(weight[node.mask].sum())
    found = [
        Share(float(f"{weight[one].sum() / total:.6g}"), one, learnt) for one, learnt in zip(masks, laws, strict=True)
    ]
    return sorted(found, key=lambda share: -share.probability)


def _clusters(node: Node, mask: Mask, quantum: float, options: Options, rounds: int) -> list[Mask]:
    """Records by behaviour: those that follow a feature are taken out first, the rest is looked at again."""
    rows = np.flatnonzero(mask)
    if rows.size < 2 * options.fewest or rounds == 0:
        return [mask]
    y = node.table.evidence.cost[rows]
    over = None if options.paper else _view(node, rows, y)
    if over is None:
        return _of_y(node, mask, quantum, options)
    masks = _parts(node, rows, np.exp(np.log(y) - over), 0.0)
    if len(masks) < 2:
        return _of_y(node, mask, quantum, options)
    follows = _followers(node, mask, [_core(one, np.log(y) - over, rows) for one in masks], quantum, options)
    if follows is None:
        return _of_y(node, mask, quantum, options)
    return [follows, *_clusters(node, mask & ~follows, quantum, options, rounds - 1)]


def _of_y(node: Node, mask: Mask, quantum: float, options: Options) -> list[Mask]:
    """Records by clusters of y itself."""
    rows = np.flatnonzero(mask)
    y = node.table.evidence.cost[rows]
    if options.paper:
        return _labelled(node, rows, labels(y, density_minima(y)))
    return _parts(node, rows, y, quantum)


def _parts(node: Node, rows: NDArray[np.intp], view: Array, tick: float) -> list[Mask]:
    """Records by clusters of a view (n,) of theirs; all of them where there is one, or where clusters are runs."""
    found = borders(view, tick, node.table.evidence.weight[rows])
    label = labels(view, found)
    if not found.size or _explained_by_runs(label, node.table.run[rows]):
        label = np.zeros(rows.size, dtype=np.intp)
    return _labelled(node, rows, label)


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


def _followers(node: Node, mask: Mask, masks: list[Mask], quantum: float, options: Options) -> Mask | None:
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
            return near
    return None


def _deviation(node: Node, learnt: Learnt) -> Array:
    """Log y − log mean of every record, (n,); infinite where the law's feature was not read."""
    named, y = node.table.named, node.table.evidence.cost
    at = {name: np.asarray(named[name], dtype=np.float64) for name in learnt.law.features}
    known = np.logical_and.reduce([~np.isnan(values) for values in at.values()])
    mean = learnt.mean({name: np.nan_to_num(values) for name, values in at.items()})
    out = np.log(np.maximum(y, 1e-9)) - np.log(np.maximum(mean, 1e-9))
    return np.where(known, out, np.inf)


def _view(node: Node, rows: NDArray[np.intp], y: Array) -> Array | None:
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


def _explained_by_runs(label: NDArray[np.intp], run: NDArray[np.intp]) -> bool:
    """Whether clusters are runs: then nothing says that they are modes of one behaviour."""
    size = np.bincount(run)
    if np.count_nonzero(size) < 2 or label.size < 5 * np.count_nonzero(size):
        return False
    shares = []
    for cluster in range(int(label.max()) + 1):
        member = (label == cluster).astype(np.float64)
        means = np.bincount(run, member) / np.maximum(size, 1)
        total = float(member.var())
        shares.append(float(((means[run] - member.mean()) ** 2).mean()) / total if total > 0 else 0.0)
    return max(shares) > BY_RUN


def _laws(node: Node, masks: Sequence[Mask], quantum: float, options: Options) -> list[Learnt]:
    """The law of each cluster: one of features where that is good, else input-independent, of its single records."""
    evidence = node.table.evidence
    parts = [part_of(evidence, mask) for mask in masks]
    cells = [make_cells(part, node.table.preferred) for part in parts]
    name = evidence.component.name
    of_features = [Series(name, one.y, one.features, one.run, quantum=quantum) for one in cells]
    alone = [Series(name, part.cost, {}, part.run, part.weight, quantum) for part in parts]
    found = learn_laws([*of_features, *alone], options)
    pairs = zip(found[: len(masks)], found[len(masks) :], strict=True)
    return [dependent if _good(dependent, options) else constant for dependent, constant in pairs]


def _good(learnt: Learnt, options: Options) -> bool:
    law = learnt.law
    return bool(law.features) and law.verdict == "law" and (law.r2 or 0.0) >= options.good_r2


def _mask(node: Node, rows: NDArray[np.intp], member: Mask) -> Mask:
    mask = np.zeros(node.mask.size, dtype=bool)
    mask[rows[member]] = True
    return mask
