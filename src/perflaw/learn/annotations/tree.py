"""Algorithm 1 of Freud (§3.2): parts of the records with a law each, split until laws are good or nothing splits them.

All components grow at once, level by level: the law learner takes thousands of series in one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.learn.annotations.conditions import Condition, Mask, Test, holds
from perflaw.learn.annotations.field import Part, field_of
from perflaw.learn.annotations.options import Options
from perflaw.learn.annotations.relevant import learn_relevant
from perflaw.learn.annotations.splits import propose
from perflaw.learn.annotations.table import Table, part_of
from perflaw.learn.cells import Cells, make_cells
from perflaw.learn.laws import Learnt, Series


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


def grow(roots: Sequence[Node], quantum: float, options: Options) -> list[list[Node]]:
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
    looked: Mapping[Place, Node], tests: Mapping[Place, Test | None], quantum: float, options: Options
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


def _with_outcomes(leaves: Sequence[dict[Place, Node]], quantum: float, options: Options) -> None:
    """Leaves without a good law get one of branch outcomes and calls as well, if that is good; in place."""
    places = [(found, place) for found in leaves for place, node in found.items() if _wants_outcomes(node, options)]
    nodes = relearnt([found[place] for found, place in places], quantum, options, outcomes=True)
    for (found, place), node in zip(places, nodes, strict=True):
        looked = _looked_at(node, options)
        if node.learnt.law.verdict == "law" and looked.part is not None and looked.part.r2 >= options.good_r2:
            found[place] = looked


def _wants_outcomes(node: Node, options: Options) -> bool:
    if node.part is None or node.part.r2 >= options.good_r2:
        return False
    return any(column.kind in ("branch", "edge") for column in node.part.field.columns)


def _looked_at(node: Node, options: Options) -> Node:
    return replace(node, part=field_of(node.table, node.mask, node.learnt, options))


def _test(node: Node, options: Options) -> Test | None:
    """The test a part is split by, if it is."""
    if node.part is None or len(node.condition) >= options.depth:
        return None
    return propose(node.part, node.learnt.law, options)


def _side(node: Node, test: Test) -> Node:
    """One side of a split, its law still that of the whole."""
    mask = node.mask & holds((test,), node.table.named, node.mask.size)
    return replace(node, condition=(*node.condition, test), mask=mask)


def relearnt(
    nodes: Sequence[Node], quantum: float, options: Options, *, outcomes: bool = False, with_regimes: bool = False
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
