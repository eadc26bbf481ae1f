"""From the leaves of a tree to the scopes of an annotation: conditions, probabilities, laws, and curves to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.learn.annotations.clean import cleaned
from perflaw.learn.annotations.conditions import Condition, Test, text_of
from perflaw.learn.annotations.distributions import of_records
from perflaw.learn.annotations.mixture import mixture
from perflaw.learn.annotations.options import Options
from perflaw.learn.annotations.scan import threshold
from perflaw.learn.annotations.table import Column, Table
from perflaw.learn.annotations.tree import Node
from perflaw.learn.cells import Array
from perflaw.learn.laws import Learnt
from perflaw.types import Curve, Law, Metric, Scope

CURVE_POINTS = 61
MOST_LEVELS = 3
"""A feature of so few consecutive numbers is a choice: conditions name its value."""

Point = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Scoped:
    """The scopes of a component, and what was done to find them."""

    scopes: tuple[Scope, ...]
    """Laws with their conditions and probabilities."""
    learnt: tuple[Learnt, ...]
    """The law behind each scope, as it can be asked."""
    marks: tuple[str, ...]
    """Selections of records that laws stand on."""


def scoped(leaves: Sequence[Node], metric: Metric, quantum: float, options: Options, at: Point | None) -> Scoped:
    """Scopes of the leaves of a component."""
    scopes: list[Scope] = []
    learnt: list[Learnt] = []
    marks: list[str] = []
    for node in leaves:
        for condition, probability, law, behind in _of_leaf(node, metric, quantum, options, marks):
            text = text_of(_plain(condition, node.table))
            scopes.append(Scope(text, probability, asked(law, behind, at)))
            learnt.append(behind)
    return Scoped(tuple(scopes), tuple(learnt), tuple(dict.fromkeys(marks)))


Piece = tuple[Condition, float, Law, Learnt]
"""Condition, probability, law, and what answers for it."""


def _of_leaf(node: Node, metric: Metric, quantum: float, options: Options, marks: list[str]) -> list[Piece]:
    """The scopes of one leaf: its behaviours, its cleaned law, its regimes, or its law."""
    shares = mixture(node, quantum, options)
    if shares is None or not any(share.learnt.law.features for share in shares):
        clean = cleaned(node, metric, quantum, options)
        if clean is not None:
            learnt, mark = clean
            marks.append(mark)
            return [(node.condition, 1.0, learnt.law, learnt)]
    if shares is not None:
        return [
            (
                node.condition,
                share.probability,
                of_records(share.learnt, node.table, share.mask, metric.unit, quantum),
                share.learnt,
            )
            for share in shares
        ]
    return _regimes(node, metric, quantum)


def _regimes(node: Node, metric: Metric, quantum: float) -> list[Piece]:
    """A law, or the segments of a piecewise one with the condition of each."""
    law = node.learnt.law
    if not law.breakpoints:
        law = of_records(node.learnt, node.table, node.mask, metric.unit, quantum)
        return [(node.condition, 1.0, law, node.learnt)]
    x = node.cells.features[law.breakpoints[0].feature]
    ends = [_end(one.feature, one.value, x) for one in law.breakpoints]
    conditions = [(*([ends[i - 1].opposite()] if i else []), *(ends[i : i + 1])) for i in range(len(law.segments))]
    return [
        ((*node.condition, *condition), 1.0, segment, node.learnt)
        for condition, segment in zip(conditions, law.segments, strict=True)
    ]


def _end(feature: str, value: float, x: np.ndarray) -> Test:
    """The test of "up to a breakpoint", by a round number between the values seen on its sides."""
    return threshold(feature, float(x[x <= value].max(initial=-np.inf)), float(x[x > value].min(initial=np.inf)))


def _plain(condition: Condition, table: Table) -> Condition:
    """A condition that names the value of a choice where it leaves one alone, instead of its limits."""
    out = condition
    for column in table.columns:
        tests = [test for test in condition if test.feature == column.name]
        if not tests or column.kind in ("branch", "edge"):
            continue
        left = [level for level in _levels(column) if all(test.holds({column.name: level}).all() for test in tests)]
        if len(left) == 1:
            value = str(left[0][0]) if column.kind == "category" else float(left[0][0])
            chosen = Test(column.name, "==", value)
            out = tuple(dict.fromkeys(chosen if test.feature == column.name else test for test in out))
    return out


def _levels(column: Column) -> list[Array]:
    """Values of a choice, one array each; none for other features."""
    if column.kind == "category":
        return [np.array([level]) for level in np.unique(column.values) if level]
    values = np.asarray(column.values, dtype=np.float64)
    levels = np.unique(values[~np.isnan(values)])
    consecutive = levels.size <= MOST_LEVELS and (np.diff(levels) == 1).all() and float(levels[0]).is_integer()
    return [np.array([level]) for level in levels] if consecutive else []


def asked(law: Law, learnt: Learnt, at: Point | None) -> Law:
    """The law with its prediction at the point asked for, where that says the features the law needs."""
    if not at or not set(law.features) <= set(at) or not set(learnt.law.features) <= set(at):
        return law
    return replace(law, predictions=tuple(learnt.predict([at])))


def curves(learnt: Sequence[Learnt]) -> tuple[Curve, ...]:
    """The first scope's law drawn over each of its features, from the smallest value seen to ten times the largest."""
    first = learnt[0]
    return tuple(_curve(first, name) for name in first.law.features)


def _curve(learnt: Learnt, feature: str) -> Curve:
    low, high = learnt.law.range[feature]
    return learnt.curve(feature, low, high * 10 if high > 0 else high, CURVE_POINTS)
