"""Algorithm 1 of Freud (§3.2): parts of the records with a law each, split until laws are good or no split is sure.

The trees of all components grow at once, level by level: the law learner takes thousands of series in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.call_laws import cell_series, learn_relevant
from perflaw.learn.annotations.conditions import Comparison, Condition, Mask
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.annotations.records import RecordColumn, RecordTable, select
from perflaw.learn.annotations.residuals import MIN_EFFECT, LawResiduals, largest_r2, law_residuals
from perflaw.learn.annotations.split_search import Split, best_split
from perflaw.learn.cells import Cells, make_cells
from perflaw.learn.series import Learnt
from perflaw.learn.series.independence import ranks
from perflaw.learn.series.regimes import MISFIT, p_of_rank_ratio
from perflaw.parts import step_of, untold
from perflaw.special import fdtrc, ndtri, stdtr
from perflaw.types import Law

Array = NDArray[np.float64]

MIN_GAIN = 10.0
"""A split improves the information criterion by at least so much: "very strong" (Kass & Raftery 1995)."""
MAX_LEFT_GOOD, MAX_LEFT = 0.25, 0.75
"""Largest part of what a good law, and another law, leaves unexplained that may remain after a split."""
LEVEL = 0.75
"""Part of the work left that a level of the trees is: the levels after it are small."""
TESTS, PIECES = 0.35, 0.55
"""Part of a level's work that is done when its nodes have tests, and when piecewise laws are learnt."""
MAX_CHOICES = 4
"""Largest number of values of a feature that may be a choice."""
Place = tuple[int, tuple[int, ...]]
"""A node: index of the component, and the way from its root, with 0 for the side where a test is true."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeNode:
    """A part of a component's records with its law."""

    table: RecordTable
    """All records of the component."""
    condition: Condition
    """The condition that is true of the part's records."""
    mask: Mask
    """The part's records, (n,)."""
    cells: Cells
    """The cells that the law was learnt from."""
    learnt: Learnt
    """The law."""
    residuals: LawResiduals | None = None
    """What the law leaves unexplained; None if there are too few records to split."""


@dataclass(frozen=True, slots=True)
class ChosenTest:
    """A comparison by which a node may be split."""

    comparison: Comparison
    """The comparison."""
    is_enough: bool = True
    """Whether its two sides explain enough. Otherwise residuals go up and down with its feature; pieces may explain them."""


def root_node(table: RecordTable, cells: Cells, learnt: Learnt) -> TreeNode:
    """All records of a component with their law."""
    return TreeNode(table, (), np.ones(table.evidence.cost.size, dtype=bool), cells, learnt)


def grow_trees(
    roots: Sequence[TreeNode], options: AnnotationOptions, tell: Callable[[float], None] = untold
) -> list[list[TreeNode]]:
    """The leaves of every component's tree, in the order of their conditions; ``tell`` is told the part that is done."""
    leaves: list[dict[Place, TreeNode]] = [{} for _ in roots]
    level: dict[Place, TreeNode] = {(i, ()): root for i, root in enumerate(roots)}
    done = 0.0
    while level:
        now, done = done, done + (1.0 - done) * LEVEL
        tests: dict[Place, ChosenTest | None] = {}
        for number, (place, node) in enumerate(level.items(), 1):
            level[place] = _with_residuals(node, options)
            tests[place] = choose_test(level[place], options)
            step_of(tell, now, done)(TESTS * number / len(level))
        within = step_of(tell, now, done)
        piecewise = _good_piecewise(level, tests, options, step_of(within, TESTS, PIECES))
        sides: dict[Place, TreeNode] = {}
        for (i, path), node in level.items():
            test = tests[i, path]
            if not test or not test.is_enough or (i, path) in piecewise:
                leaves[i][i, path] = piecewise.get((i, path), node)
                continue
            for side, one in enumerate((test.comparison, test.comparison.opposite())):
                mask = node.mask & one.holds(node.table.by_name)
                sides[i, (*path, side)] = replace(node, condition=(*node.condition, one), mask=mask)
        again = _relearn(list(sides.values()), options, tell=step_of(within, PIECES, 1.0))
        level = dict(zip(sides, again, strict=True))
    # Give leaves without a good law one that may depend on branch outcomes and calls, if that is good.
    poor = [
        (of_component, place)
        for of_component in leaves
        for place, node in of_component.items()
        if node.residuals is not None
        and not _is_good(node, options)
        and any(column.is_outcome for column in node.residuals.field.columns)
        and (options.paper or largest_r2(node.residuals) >= options.good_r2)
    ]
    again = _relearn(
        [of_component[place] for of_component, place in poor], options, outcomes=True, tell=step_of(tell, done, 1.0)
    )
    for (of_component, place), node in zip(poor, again, strict=True):
        better = _with_residuals(node, options)
        if better.learnt.law.verdict == "law" and _is_good(better, options):
            of_component[place] = better
    return [[of_component[place] for place in sorted(of_component)] for of_component in leaves]


def _relearn(
    nodes: Sequence[TreeNode],
    options: AnnotationOptions,
    *,
    outcomes: bool = False,
    regimes: bool = False,
    tell: Callable[[float], None] = untold,
) -> list[TreeNode]:
    """Nodes with laws of their own records; with ``outcomes`` branch outcomes and calls may be features as well."""
    cells = []
    for node in nodes:
        part = select(node.table.evidence, node.mask)
        if outcomes:
            part = replace(part, features={**part.features, **part.branches, **part.edges})
        cells.append(make_cells(part, node.table.preferred))
    series = [
        replace(cell_series(node.table.evidence, of_node, options), worth=node.learnt.rows.series.worth)
        for node, of_node in zip(nodes, cells, strict=True)
    ]
    learnt, _ = learn_relevant(series, options, regimes=regimes, tell=tell)
    return [replace(node, cells=of_node, learnt=law) for node, of_node, law in zip(nodes, cells, learnt, strict=True)]


def _with_residuals(node: TreeNode, options: AnnotationOptions) -> TreeNode:
    return replace(node, residuals=law_residuals(node.table, node.mask, node.learnt, options))


def _is_good(node: TreeNode, options: AnnotationOptions) -> bool:
    return node.residuals is not None and node.residuals.r2 >= options.good_r2


def _good_piecewise(
    level: Mapping[Place, TreeNode],
    tests: Mapping[Place, ChosenTest | None],
    options: AnnotationOptions,
    tell: Callable[[float], None],
) -> dict[Place, TreeNode]:
    """Nodes that a good piecewise law describes whole, with intervals: they are split by the feature of their law."""
    chosen = {
        place: test
        for place, test in tests.items()
        if test
        and isinstance(test.comparison.value, float)
        and not test.comparison.counts
        and set(level[place].learnt.law.features) <= {test.comparison.feature}
    }
    again = _relearn([level[p] for p in chosen], options, regimes=True, tell=tell)
    nodes = [_with_residuals(one, options) for one in again]
    return {
        place: node
        for place, node in zip(chosen, nodes, strict=True)
        if node.learnt.law.breakpoints and _is_good(node, options)
    }


def choose_test(node: TreeNode, options: AnnotationOptions) -> ChosenTest | None:
    """The comparison by which a node is split, None if it stays whole."""
    residuals, law = node.residuals, node.learnt.law
    if residuals is None or len(node.condition) >= options.depth:
        return None
    choice = _choice(residuals, law, options)
    if choice is not None:
        return ChosenTest(choice)
    if residuals.scatter < MIN_EFFECT:
        return None  # no split could explain enough to matter
    if options.paper:
        # Conditions of the code come first, then those of features.
        branches = [column for column in residuals.field.columns if column.kind == "branch"]
        of_branches = replace(residuals, field=replace(residuals.field, columns=branches))
        return _sure_test(of_branches, law, options) or _sure_test(residuals, law, options)
    return _sure_test(residuals, law, options)


def _sure_test(residuals: LawResiduals, law: Law, options: AnnotationOptions) -> ChosenTest | None:
    """The test of the best split, if that is sure, and matters or shows that the law has the wrong shape."""
    split, tried = best_split(residuals.field)
    if split is None or residuals.criterion - split.criterion < MIN_GAIN:
        return None
    left = split.rss / max(float(residuals.unexplained[split.response]), 1e-300)
    misses_shape = _misses_shape(residuals, law, split.test)
    limit = MAX_LEFT_GOOD if residuals.r2 >= options.good_r2 and not misses_shape else MAX_LEFT
    is_enough = bool(left <= limit and residuals.scatter * np.sqrt(max(1.0 - left, 0.0)) >= MIN_EFFECT)
    if not (is_enough or misses_shape) or split_p_value(residuals, split) * tried > options.p:
        return None
    return ChosenTest(split.test, is_enough)


def _misses_shape(residuals: LawResiduals, law: Law, test: Comparison) -> bool:
    """Whether residuals go up and down with the one feature of a law, by which it is to be split.

    Where sizes differ by a factor of a thousand, R² is high for each law that grows at all, also for one that is wrong by a
    factor of two where lists leave the caches.
    """
    if tuple(law.features) != (test.feature,) or not isinstance(test.value, float):
        return False
    [size] = [column.numbers for column in residuals.field.columns if column.name == test.feature]
    return p_of_rank_ratio(residuals.residual[np.argsort(size, kind="stable")]) < MISFIT


def _choice(residuals: LawResiduals, law: Law, options: AnnotationOptions) -> Comparison | None:
    """The test of a feature that is a choice and no quantity, if the law depends on several features.

    A feature of two values is a choice, because it cannot be told from a quantity; one of more values is a choice if
    laws for each value explain more than the one law.
    """
    if len(law.features) < 2:
        return None

    def values(column: RecordColumn) -> int:
        """Number of values of an input; 0 if one of them is rare."""
        if not column.is_input:
            return 0
        found, count = np.unique(column.values, return_counts=True)
        return int(found.size) if count.min() >= options.fewest else 0

    number = {column.name: values(column) for column in residuals.field.columns}
    choices = [column for column in residuals.field.columns if 2 <= number[column.name] <= MAX_CHOICES]
    for column in choices:
        if column.name in law.features and (
            number[column.name] == 2 or residuals.field.criterion_by_level(column) < residuals.criterion - MIN_GAIN
        ):
            split, _ = best_split(replace(residuals.field, columns=choices))
            return split.test if split else None
    return None


def split_p_value(residuals: LawResiduals, split: Split) -> float:
    """Probability of such a difference of the two sides by chance, for one candidate split.

    Neither heavy tails nor unequal scatter nor effects of runs mislead it: residuals of the part's law become normal
    scores (van der Waerden), so that no outlier counts for more than its rank, and each side is held against "the law of
    the whole holds here" with its own scatter, by an F test.
    """
    inside, run = split.mask(), residuals.run
    scores = ndtri((ranks(residuals.residual) - 0.5) / residuals.residual.size)
    present = np.bincount(run) > 0
    if present.sum() > 1 and np.isin(_run_means(inside.astype(np.float64), run)[present], (0.0, 1.0)).all():
        return _p_between_runs(scores, inside, run)  # the condition is one of whole runs
    scores = scores - _run_means(scores, run)[run]
    sides = []
    for side, basis in ((inside, split.bases[0]), (~inside, split.bases[1])):
        tests = [_p_of_zero(scores[side], None)]
        if basis >= 0:
            # The basis was chosen among K: its p is corrected for all of them.
            p = _p_of_zero(scores[side], residuals.bases[basis][side])
            tests.append(min(1.0, p * max(len(residuals.bases), 1)))
        sides.append(min(tests) * len(tests))
    return min(1.0, 2.0 * min(sides))


def _run_means(values: Array, run: NDArray[np.intp]) -> Array:
    """Mean of each run, by its number; 0 for a run without records."""
    return np.asarray(np.bincount(run, values) / np.maximum(np.bincount(run), 1))


def _p_of_zero(scores: Array, basis: Array | None) -> float:
    """P of "the scores of a side have mean 0 (and no slope in the basis)", by an F test."""
    n = scores.size
    left = scores - scores.mean()
    parameters = 1
    if basis is not None:
        x = basis - basis.mean()
        squares = float(x @ x)
        if squares <= 0:
            return 1.0
        left = left - x * (float(x @ scores) / squares)
        parameters = 2
    unexplained = float(left @ left)
    explained = float(scores @ scores) - unexplained
    if n <= parameters:
        return 1.0
    freedom = n - parameters
    return float(fdtrc(parameters, freedom, (explained / parameters) / max(unexplained / freedom, 1e-12)))


def _p_between_runs(scores: Array, inside: Mask, run: NDArray[np.intp]) -> float:
    """P of equal means of the runs on both sides, by Student's t test; 1 with fewer than two runs on a side."""
    means = _run_means(scores, run)
    present = np.flatnonzero(np.bincount(run) > 0)
    side = _run_means(inside.astype(np.float64), run)[present] > 0.5
    a, b = means[present][side], means[present][~side]
    if min(a.size, b.size) < 2:
        return 1.0
    freedom = a.size + b.size - 2
    pooled = (float(((a - a.mean()) ** 2).sum()) + float(((b - b.mean()) ** 2).sum())) / freedom
    t = abs(a.mean() - b.mean()) / np.sqrt(max(pooled, 1e-12) * (1.0 / a.size + 1.0 / b.size))
    return float(2.0 * stdtr(freedom, -t))
