"""Algorithm 1 of Freud (§3.2): parts of the records with a law each, split until laws are good or nothing splits them.

All components grow at once, level by level: the law learner takes thousands of series in one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtri, stdtr

from perflaw.learn.annotations.conditions import Condition, Mask, Test, holds
from perflaw.learn.annotations.field import MIN_EFFECT, Part, field_of
from perflaw.learn.annotations.relevant import learn_relevant
from perflaw.learn.annotations.scan import Split, best_split, by_levels, sides
from perflaw.learn.annotations.table import AnnotationOptions, Column, Table, part_of
from perflaw.learn.cells import Cells, make_cells
from perflaw.learn.series import Learnt, Series
from perflaw.learn.series.ranks import ranks
from perflaw.types import Law

# ---- How sure a split is: a test that heavy tails, unequal scatter and effects of runs do not fool.
#
# Residuals of the part's law become normal scores (van der Waerden), so that no outlier counts for more than its
# rank.
# Each side is held against "the law of the whole holds here" with its own scatter, by an F test.

Array = NDArray[np.float64]


def p_value(part: Part, split: Split, inside: Mask) -> float:
    """Probability of such a difference of two sides by chance, for one split looked at."""
    n = part.residual.size
    scores = ndtri((ranks(part.residual) - 0.5) / n)
    if _of_runs(inside, part.run):
        return _between(scores, inside, part.run)
    scores = scores - _run_means(scores, part.run)[part.run]
    found = []
    for side, basis in ((inside, split.bases[0]), (~inside, split.bases[1])):
        here = [_against_zero(scores[side], None)]
        if basis >= 0:
            # One basis of K was chosen: it answers for all.
            here.append(min(1.0, _against_zero(scores[side], part.bases[basis][side]) * max(len(part.bases), 1)))
        found.append(min(here) * len(here))
    return min(1.0, 2.0 * min(found))


def _of_runs(inside: Mask, run: NDArray[np.intp]) -> bool:
    """Whether the condition is the same for all records of a run, of several."""
    share = _run_means(inside.astype(np.float64), run)
    present = np.bincount(run) > 0
    return bool(present.sum() > 1 and np.isin(share[present], (0.0, 1.0)).all())


def _run_means(values: Array, run: NDArray[np.intp]) -> Array:
    size = np.bincount(run)
    return np.asarray(np.bincount(run, values) / np.maximum(size, 1))


def _against_zero(scores: Array, basis: Array | None) -> float:
    """Chance p of "the scores of a side have mean 0 (and no slope)", by an F test."""
    n = scores.size
    rest = scores - scores.mean()
    used = 1
    if basis is not None:
        x = basis - basis.mean()
        among = float(x @ x)
        if among <= 0:
            return 1.0
        rest = rest - x * (float(x @ scores) / among)
        used = 2
    left = float(rest @ rest)
    explained = float(scores @ scores) - left
    if n <= used:
        return 1.0
    return float(fdtrc(used, n - used, (explained / used) / max(left / (n - used), 1e-12)))


def _between(scores: Array, inside: Mask, run: NDArray[np.intp]) -> float:
    """Chance p by Student's t of runs' means; 1 with fewer than two runs on a side."""
    means = _run_means(scores, run)
    present = np.flatnonzero(np.bincount(run) > 0)
    of_run = _run_means(inside.astype(np.float64), run)[present] > 0.5
    a, b = means[present][of_run], means[present][~of_run]
    if min(a.size, b.size) < 2:
        return 1.0
    freedom = a.size + b.size - 2
    pooled = (float(((a - a.mean()) ** 2).sum()) + float(((b - b.mean()) ** 2).sum())) / freedom
    t = abs(a.mean() - b.mean()) / np.sqrt(max(pooled, 1e-12) * (1.0 / a.size + 1.0 / b.size))
    return float(2.0 * stdtr(freedom, -t))


# ---- Whether a part of the records is split, and where: the best of all conditions, if it is sure and matters.

MIN_GAIN = 10.0
"""A split improves the information criterion by at least so much: "very strong" (Kass & Raftery 1995)."""
REMAINS_GOOD, REMAINS = 0.25, 0.75
"""Of what a good law leaves unexplained, and of what another one does, a split leaves at most so much."""
MOST_CHOICES = 4
"""Values of a feature that may be a choice."""


def propose(part: Part, law: Law, options: AnnotationOptions) -> Test | None:
    """The test by which a part with its law is split, None where it stays whole."""
    choice = _choice(part, law, options)
    if choice is not None:
        return choice
    if part.scatter < MIN_EFFECT:
        return None  # no split could explain enough to matter
    if options.paper:
        # Conditions of the code first; then what features say.
        outcomes = [column for column in part.field.columns if column.kind == "branch"]
        return _sure(replace(part, field=replace(part.field, columns=outcomes)), options) or _sure(part, options)
    return _sure(part, options)


def _sure(part: Part, options: AnnotationOptions) -> Test | None:
    """The best split where it is sure and matters."""
    split, tried = best_split(part.field)
    if split is None or part.criterion - split.criterion < MIN_GAIN or not _matters(part, split, options):
        return None
    return split.test if p_value(part, split, sides(part.field, split)) * tried <= options.p else None


def _choice(part: Part, law: Law, options: AnnotationOptions) -> Test | None:
    """A feature of a few values in a law of several may be a choice and no quantity: then it parts the records.

    Of two values that cannot be told apart; of more it is where laws for each value explain more than the one of all.
    """
    if len(law.features) < 2:
        return None
    sizes = {column.name: _values(column, options.fewest) for column in part.field.columns}
    choices = [column for column in part.field.columns if 2 <= sizes[column.name] <= MOST_CHOICES]
    for column in choices:
        if column.name not in law.features:
            continue
        if sizes[column.name] == 2 or by_levels(part.field, column) < part.criterion - MIN_GAIN:
            split, _ = best_split(replace(part.field, columns=choices))
            return split.test if split else None
    return None


def _values(column: Column, fewest: int) -> int:
    """How many values a number has; 0 where one is rare, or it is no number known before the call."""
    if column.kind not in ("feature", "run"):
        return 0
    values, count = np.unique(column.values, return_counts=True)
    return int(values.size) if count.min() >= fewest else 0


def _matters(part: Part, split: Split, options: AnnotationOptions) -> bool:
    """Whether what the split explains is worth telling."""
    remains = split.rss / max(float(part.unexplained[split.response]), 1e-300)
    if remains > (REMAINS_GOOD if part.r2 >= options.good_r2 else REMAINS):
        return False
    return bool(part.scatter * np.sqrt(max(1.0 - remains, 0.0)) >= MIN_EFFECT)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A part of a component's records with its law."""

    table: Table
    """All records of the component."""
    condition: Condition
    """What the part's records have in common."""
    mask: Mask
    """Which records they are, (n,)."""
    cells: Cells
    """Points that the law was learnt from."""
    learnt: Learnt
    """The law."""
    part: Part | None = None
    """The records with their residuals; None where they are too few to look at."""


Place = tuple[int, tuple[int, ...]]
"""Component, and the way from its root to a part: 0 where a test holds."""


def grow(roots: Sequence[Node], quantum: float, options: AnnotationOptions) -> list[list[Node]]:
    """The leaves of every component, in the order of their conditions."""
    leaves: list[dict[Place, Node]] = [{} for _ in roots]
    level: dict[Place, Node] = {(i, ()): root for i, root in enumerate(roots)}
    while level:
        looked = {place: _looked_at(node, options) for place, node in level.items()}
        tests = {place: _test(node, options) for place, node in looked.items()}
        pieces = _piecewise(looked, tests, quantum, options)
        wanted: dict[Place, Node] = {}
        for (i, path), node in looked.items():
            test = tests[i, path]
            if test is None or (i, path) in pieces:
                leaves[i][i, path] = pieces.get((i, path), node)
            else:
                wanted |= {(i, (*path, side)): _side(node, one) for side, one in enumerate((test, test.opposite()))}
        level = dict(zip(wanted, relearnt(list(wanted.values()), quantum, options), strict=True))
    _with_outcomes(leaves, quantum, options)
    return [[found[place] for place in sorted(found)] for found in leaves]


def _piecewise(
    looked: Mapping[Place, Node], tests: Mapping[Place, Test | None], quantum: float, options: AnnotationOptions
) -> dict[Place, Node]:
    """Nodes that a good piecewise law tells whole: split by the very feature their law is of. It has intervals."""
    places = [place for place, test in tests.items() if test and _of_its_feature(looked[place], test)]
    nodes = relearnt([looked[place] for place in places], quantum, options, with_regimes=True)
    found = {place: _looked_at(node, options) for place, node in zip(places, nodes, strict=True)}
    return {
        place: node
        for place, node in found.items()
        if node.learnt.law.breakpoints and node.part is not None and node.part.r2 >= options.good_r2
    }


def _of_its_feature(node: Node, test: Test) -> bool:
    return isinstance(test.value, float) and not test.counts and set(node.learnt.law.features) <= {test.feature}


def _with_outcomes(leaves: Sequence[dict[Place, Node]], quantum: float, options: AnnotationOptions) -> None:
    """Leaves without a good law get one of branch outcomes and calls as well, if that is good; in place."""
    places = [(found, place) for found in leaves for place, node in found.items() if _wants_outcomes(node, options)]
    nodes = relearnt([found[place] for found, place in places], quantum, options, outcomes=True)
    for (found, place), node in zip(places, nodes, strict=True):
        looked = _looked_at(node, options)
        if node.learnt.law.verdict == "law" and looked.part is not None and looked.part.r2 >= options.good_r2:
            found[place] = looked


def _wants_outcomes(node: Node, options: AnnotationOptions) -> bool:
    if node.part is None or node.part.r2 >= options.good_r2:
        return False
    return any(column.kind in ("branch", "edge") for column in node.part.field.columns)


def _looked_at(node: Node, options: AnnotationOptions) -> Node:
    return replace(node, part=field_of(node.table, node.mask, node.learnt, options))


def _test(node: Node, options: AnnotationOptions) -> Test | None:
    """The test a part is split by, if it is."""
    if node.part is None or len(node.condition) >= options.depth:
        return None
    return propose(node.part, node.learnt.law, options)


def _side(node: Node, test: Test) -> Node:
    """One side of a split, its law still that of the whole."""
    mask = node.mask & holds((test,), node.table.named, node.mask.size)
    return replace(node, condition=(*node.condition, test), mask=mask)


def relearnt(
    nodes: Sequence[Node],
    quantum: float,
    options: AnnotationOptions,
    *,
    outcomes: bool = False,
    with_regimes: bool = False,
) -> list[Node]:
    """Parts with laws learnt from their own records; ``outcomes``: of branch outcomes and call edges as well."""
    parts = [part_of(node.table.evidence, node.mask) for node in nodes]
    if outcomes:
        parts = [replace(one, features={**one.features, **one.branches, **one.edges}) for one in parts]
    cells = [make_cells(part, node.table.preferred) for part, node in zip(parts, nodes, strict=True)]
    series = [
        Series(node.table.evidence.component.name, one.y, one.features, one.run, quantum=quantum)
        for node, one in zip(nodes, cells, strict=True)
    ]
    found, _ = learn_relevant(series, options, regimes=with_regimes)
    triples = zip(nodes, cells, found, strict=True)
    return [replace(node, cells=one, learnt=learnt) for node, one, learnt in triples]


def root(table: Table, cells: Cells, learnt: Learnt) -> Node:
    """The whole of a component's records with the law of all."""
    return Node(table, (), np.ones(table.evidence.cost.size, dtype=bool), cells, learnt)
