"""From the leaves of a tree to the scopes of an annotation: conditions, probabilities, laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.learn.annotations.conditions import Comparison, Condition, condition_expression, threshold
from perflaw.learn.annotations.mixture import learn_mixture
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.annotations.record_noise import with_record_noise
from perflaw.learn.annotations.records import RecordTable
from perflaw.learn.annotations.selections import learn_selection
from perflaw.learn.annotations.together import LawSearch, search_together
from perflaw.learn.annotations.tree import TreeNode
from perflaw.learn.series import Learnt
from perflaw.parts import untold
from perflaw.types import Law, Scope

MAX_LEVELS = 3
"""A feature of so few consecutive numbers is a choice: conditions name its value."""
Point = Mapping[str, float]
"""Feature → value."""
LeafScope = tuple[Condition, float, Law, Learnt]
"""Condition, probability, law of the records, and the law that was learnt."""


@dataclass(frozen=True, slots=True)
class ComponentScopes:
    """The scopes of a component."""

    scopes: tuple[Scope, ...]
    """Laws with their conditions and probabilities."""
    learnt: tuple[Learnt, ...]
    """The law behind each scope, which predicts."""
    marks: tuple[str, ...]
    """Names of the selections of records that laws were learnt from."""


def component_scopes(
    leaves: Sequence[Sequence[TreeNode]],
    options: AnnotationOptions,
    at: Point | None,
    tell: Callable[[float], None] = untold,
) -> list[ComponentScopes]:
    """The scopes of the leaves of each component, with predictions at a point; ``tell`` is told the part that is done."""
    found = iter(search_together([_leaf_scopes(node, options) for of_one in leaves for node in of_one], options, tell))
    return [_scopes_of(of_one, [next(found) for _ in of_one], at) for of_one in leaves]


def _scopes_of(
    leaves: Sequence[TreeNode], of_leaves: Sequence[tuple[list[LeafScope], str]], at: Point | None
) -> ComponentScopes:
    """The scopes of one component: those of its leaves, each with the name of its selection."""
    scopes: list[Scope] = []
    learnt: list[Learnt] = []
    for node, (of_leaf, _) in zip(leaves, of_leaves, strict=True):
        for condition, probability, law, behind in of_leaf:
            expression = condition_expression(_with_choices(condition, node.table))
            scopes.append(Scope(expression, probability, with_prediction(law, behind, at)))
            learnt.append(behind)
    marks = dict.fromkeys(mark for _, mark in of_leaves if mark)
    return ComponentScopes(tuple(scopes), tuple(learnt), tuple(marks))


def _leaf_scopes(node: TreeNode, options: AnnotationOptions) -> LawSearch[tuple[list[LeafScope], str]]:
    """The scopes of a leaf: the modes of a mixture, a law of selected records (named), its regimes, or its law."""
    modes = yield from learn_mixture(node, options)
    if modes is None or not any(mode.learnt.law.features for mode in modes):
        selection = yield from learn_selection(node, options)
        if selection is not None:
            learnt, mark = selection
            return [(node.condition, 1.0, learnt.law, learnt)], mark
    if modes is not None:
        laws = [with_record_noise(mode.learnt, node.table, mode.mask, options) for mode in modes]
        return [(node.condition, mode.probability, law, mode.learnt) for mode, law in zip(modes, laws, strict=True)], ""
    law = node.learnt.law
    if not law.breakpoints:
        return [(node.condition, 1.0, with_record_noise(node.learnt, node.table, node.mask, options), node.learnt)], ""
    # The segments of a piecewise law, each up to a round number between the values beside its breakpoint.
    x = node.cells.features[law.breakpoints[0].feature]
    ends = [
        threshold(
            one.feature, float(x[x <= one.value].max(initial=-np.inf)), float(x[x > one.value].min(initial=np.inf))
        )
        for one in law.breakpoints
    ]
    conditions = [(*([ends[i - 1].opposite()] if i else []), *ends[i : i + 1]) for i in range(len(law.segments))]
    return [
        ((*node.condition, *condition), 1.0, segment, node.learnt)
        for condition, segment in zip(conditions, law.segments, strict=True)
    ], ""


def _with_choices(condition: Condition, table: RecordTable) -> Condition:
    """The condition, where comparisons that leave one value of a choice become an equality."""
    named = condition
    for column in table.columns:
        tests = [test for test in condition if test.feature == column.name]
        if not tests or column.is_outcome:
            continue
        # Values of a choice, one array each; none for a quantity.
        if column.kind == "category":
            choices = [np.array([level]) for level in np.unique(column.values) if level]
        else:
            levels = np.unique(column.numbers[~np.isnan(column.numbers)])
            consecutive = levels.size <= MAX_LEVELS and (np.diff(levels) == 1).all() and float(levels[0]).is_integer()
            choices = [np.array([level]) for level in levels] if consecutive else []
        left = [level for level in choices if all(test.holds({column.name: level}).all() for test in tests)]
        if len(left) == 1:
            value = str(left[0][0]) if column.kind == "category" else float(left[0][0])
            equality = Comparison(column.name, "==", value)
            named = tuple(dict.fromkeys(equality if test.feature == column.name else test for test in named))
    return named


def with_prediction(law: Law, learnt: Learnt, at: Point | None) -> Law:
    """The law with its prediction at a point, if the point has the features of the law."""
    if not at or not set(law.features) <= set(at) or not set(learnt.law.features) <= set(at):
        return law
    return replace(law, predictions=tuple(learnt.predict([at])))
