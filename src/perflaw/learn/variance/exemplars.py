"""Invocations to look at: the worst that were kept, and some at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from perflaw.learn.variance.sampled import Sampled
from perflaw.learn.variance.tree import Tree
from perflaw.types.explanations import Callee, Exemplar
from perflaw.types.measured import Component

WORST: Final = 8
RANDOM: Final = 4
_SEED: Final = 1
_Reason = Literal["worst", "random"]


def exemplars(tree: Tree, some: Sampled | None) -> tuple[Exemplar, ...]:
    """The worst, the worst first, then some of the uniform sample."""
    if some is None:
        return ()
    worst = some.places[::-1][:WORST]
    others = np.setdiff1d(some.places[some.samples.uniform[some.places]], worst)
    drawn = np.random.default_rng(_SEED).choice(others, min(RANDOM, len(others)), replace=False)
    reasons: list[tuple[_Reason, Sequence[int]]] = [("worst", worst.tolist()), ("random", sorted(drawn.tolist()))]
    return tuple(_exemplar(tree, reason, place) for reason, places in reasons for place in places)


def _exemplar(tree: Tree, reason: _Reason, place: int) -> Exemplar:
    samples = tree.given.samples
    assert samples is not None
    rows = np.flatnonzero(samples.of == place).tolist()
    callees = [_callee(tree, int(samples.callee[row]), int(samples.k[row]), float(samples.y[row])) for row in rows]
    features = {
        name: float(column[place]) for name, column in samples.features.items() if column[place] == column[place]
    }
    return Exemplar(
        reason,
        samples.run[place],
        int(samples.sequence[place]),
        int(samples.started[place]),
        float(samples.x[place]),
        float(samples.time[place]),
        float(samples.cpu[place]),
        tree.steps(tree.path(int(samples.node[place]))),
        tuple(sorted(callees, key=lambda one: -one.y)),
        dict(sorted(features.items())),
    )


def _callee(tree: Tree, node: int, k: int, y: float) -> Callee:
    component: Component | None = tree.given.components[tree.component[node]] if node >= 0 else None
    return Callee(component, tree.line[node] if node >= 0 else 0, k, y)
