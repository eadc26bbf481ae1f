"""Algorithm 2 of Freud (§3.2): clusters of the responses, a law for each, and how probable each is.

Clusters are looked for in y and in y over a feature (x, x log x, x²): where one of several behaviours follows a feature, its
records are close together there and nowhere else. Of these views the one of least entropy is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.options import Options
from perflaw.learn.annotations.relevant import learn_relevant
from perflaw.learn.annotations.same import told_apart, two_speeds
from perflaw.learn.annotations.table import part_of
from perflaw.learn.annotations.tree import Node
from perflaw.learn.annotations.views import best_view
from perflaw.learn.cells import make_cells
from perflaw.learn.laws import Learnt, Series
from perflaw.learn.minima import density_minima
from perflaw.learn.modes import borders, labels

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


def mixture(node: Node, quantum: float, options: Options) -> list[Share] | None:
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


def _clusters(node: Node, mask: Mask, quantum: float, options: Options, rounds: int) -> list[Mask]:
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


def _of_y(node: Node, mask: Mask, quantum: float, options: Options) -> list[Mask]:
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


def _laws(node: Node, masks: Sequence[Mask], quantum: float, options: Options) -> list[Learnt]:
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


def _good(learnt: Learnt, options: Options) -> bool:
    law = learnt.law
    return bool(law.features) and law.verdict == "law" and (law.r2 or 0.0) >= options.good_r2


def _mask(node: Node, rows: NDArray[np.intp], member: Mask) -> Mask:
    mask = np.zeros(node.mask.size, dtype=bool)
    mask[rows[member]] = True
    return mask
