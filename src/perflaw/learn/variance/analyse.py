"""The steps of the analysis of variance in their order (§7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from perflaw.learn.variance.explain import explain
from perflaw.learn.variance.interruptions import remove_interruptions
from perflaw.learn.variance.labels import SegmentsByNode, Vertex, extract, label
from perflaw.learn.variance.merging import Merger
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.patterns import patterns_of
from perflaw.learn.variance.tail import cost_distribution
from perflaw.learn.variance.tree import Tree
from perflaw.types.call_trees import CallTree
from perflaw.types.recordings import Component
from perflaw.types.variance import Explanation, Variance

CURVE_POINTS: Final = 40
"""Number of deadlines at which the curve of misses is known."""
CURVE_MARGIN: Final = 1.5
"""Factor by which the curve extends beyond the fastest and the slowest call, where only Chebyshev's bound goes on."""


def variance(
    tree: CallTree,
    options: Options | None = None,
    component: Component | None = None,
    deadlines: Sequence[float] = (),
) -> Variance:
    """The patterns of variance of a program, most important first, and the explanation of one function.

    That is ``component``, whose drivers are learnt as well; by default the root of the first pattern is explained.
    ``deadlines`` are in the unit of the metric.
    """
    found = survey(tree, options)
    patterns = found.variance.patterns
    chosen = component or (patterns[0].nodes[0].component if patterns else None)
    if chosen is None:
        return found.variance
    return replace(found.variance, explanation=found.explain(chosen, deadlines, with_drivers=component is not None))


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The patterns of one metric, and the tree that any function can be explained from."""

    tree: Tree
    """The call tree, with interruptions removed."""
    variance: Variance
    """Its patterns, without an explanation."""
    options: Options
    """The options by which they were found."""

    def explain(self, component: Component, deadlines: Sequence[float], with_drivers: bool) -> Explanation | None:
        """Why a function is sometimes slow; None if no call of it completed. The component must be in the tree."""
        number = self.tree.call_tree.components.index(component)
        explanation = explain(self.tree, number, self.options, deadlines)
        if not explanation or not with_drivers:
            return explanation
        from perflaw.learn.variance.drivers import drivers  # the law learner takes long to import

        return replace(explanation, drivers=drivers(self.tree, self.tree.contexts(number), self.options))

    def explain_with_curve(self, component: Component, with_drivers: bool) -> Explanation | None:
        """Why a function is sometimes slow, with a whole curve of deadlines.

        None if no call of it completed, or if the component is not in the tree. Deadlines are spread evenly on a
        logarithmic axis, from below the fastest call to above the slowest.
        """
        if component not in self.tree.call_tree.components:
            return None
        heads = self.tree.contexts(self.tree.call_tree.components.index(component))
        costs = cost_distribution(self.tree, heads)
        values = costs.values[(costs.values > 0) & (costs.weight > 0)] if costs is not None else np.zeros(0)
        deadlines: list[float] = []
        if len(values):
            low, high = float(values.min()) / CURVE_MARGIN, float(values.max()) * CURVE_MARGIN
            deadlines = np.geomspace(low, high, CURVE_POINTS).tolist()
        return self.explain(component, deadlines, with_drivers)


def survey(tree: CallTree, options: Options | None = None) -> Survey:
    """The patterns of a call tree, ready to explain its functions."""
    return surveys(tree, [options or Options()])[0]


def surveys(tree: CallTree, several: Sequence[Options]) -> list[Survey]:
    """The patterns under several pressures and trims (§8.1); labels are those of the first options."""
    walked = Tree(remove_interruptions(tree))
    labels = label(walked, several[0])
    segments, extracted = labels.segments_by_node(), extract(walked, labels)
    merged = {
        (pressure, paper): ordered(Merger(segments, pressure, paper).merge(extracted))
        for pressure, paper in {(options.pressure, options.paper) for options in several}
    }
    found = []
    for options in several:
        vertices = merged[options.pressure, options.paper]
        patterns = patterns_of(walked, trimmed(vertices, options.trim, segments), segments, options)
        too_few = sum(stats.n < options.least for stats in walked.stats[1:])
        sizes = _nodes_and_patterns(extracted), _nodes_and_patterns(vertices)
        notes = walked.call_tree.notes
        result = Variance(tree.metric, patterns, *sizes, walked.size - 1, too_few, notes=notes)
        found.append(Survey(walked, result, options))
    return found


def _nodes_and_patterns(patterns: Sequence[Vertex]) -> tuple[int, int]:
    return sum(1 for pattern in patterns for _ in pattern.walk()), len(patterns)


def ordered(vertices: Sequence[Vertex]) -> list[Vertex]:
    """Vertices by variance impact at every depth, the largest first (§4; §7, step 5).

    Patterns of contrasts alone come last: many calls of a steady function have a large σ·N as well.
    """
    inner = [replace(one, children=tuple(ordered(one.children))) for one in vertices]
    return sorted(inner, key=lambda one: (not _varies(one), -one.vim, one.order))


def trimmed(
    vertices: Sequence[Vertex], beta: float, segments: SegmentsByNode, above: frozenset[int] = frozenset()
) -> list[Vertex]:
    """Vertices without those that have less than β of the largest VIM at their level.

    What lies on a linear segment stays if the segment's head stands above it; ``above`` are the tree's nodes there.
    """
    rivals = [one for one in vertices if _varies(one)] or vertices
    most = max((one.vim for one in rivals), default=0.0)
    kept = []
    for one in vertices:
        on_segment = any(head in above for member in one.members for head, _ in segments.get(member, ()))
        if one.vim >= beta * most or on_segment:
            kept.append(replace(one, children=tuple(trimmed(one.children, beta, segments, above | one.members))))
    return kept


def _varies(vertex: Vertex) -> bool:
    return any(one.kind != "Contrast" for one in vertex.walk())
