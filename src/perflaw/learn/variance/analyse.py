"""The steps of the analysis in their order (§7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from perflaw.learn.variance.cleaning import cleaned
from perflaw.learn.variance.deadlines import observed
from perflaw.learn.variance.explain import contexts_of, explain
from perflaw.learn.variance.merging import Merger, Passing, passing_of
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.patterns import patterns_of
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.vertex import Vertex, count, extract, label
from perflaw.types.call_trees import CallTree
from perflaw.types.recordings import Component
from perflaw.types.variance import Explanation, Pattern, Variance

# ---- What matters first: ordering by variance impact, and trimming (§4, step 5 of §7).
#
# What is only there for contrast does not outweigh what varies: many calls of a steady function have much σ·N as
# well.


def ordered(vertices: Sequence[Vertex]) -> list[Vertex]:
    """Most important first, at every depth; what is there for contrast alone comes last."""
    inner = [replace(one, children=tuple(ordered(one.children))) for one in vertices]
    return sorted(inner, key=lambda one: (not _varies(one), -one.vim, one.order))


def trimmed(vertices: Sequence[Vertex], beta: float, passing: Passing, above: frozenset[int]) -> list[Vertex]:
    """Leave out what has less than β of the greatest VIM at its level, but nothing on a segment that is told."""
    rivals = [one for one in vertices if _varies(one)] or vertices
    most = max((one.vim for one in rivals), default=0.0)
    kept = [one for one in vertices if one.vim >= beta * most or _told(one, passing, above)]
    return [replace(one, children=tuple(trimmed(one.children, beta, passing, above | one.members))) for one in kept]


def _varies(vertex: Vertex) -> bool:
    return any(one.kind != "Contrast" for one in vertex.walk())


def _told(vertex: Vertex, passing: Passing, above: frozenset[int]) -> bool:
    """Whether it lies on a linear segment whose head stands above it."""
    return any(head in above for member in vertex.members for head, _ in passing.get(member, ()))


def variance(
    given: CallTree, options: Options | None = None, asked: Component | None = None, deadlines: Sequence[float] = ()
) -> Variance:
    """The patterns of variance of a program, most important first, and the explanation of one function.

    That is the one ``asked`` for, else the root of the first pattern; of that asked for, what drives it is learnt as well.
    ``deadlines`` are in the unit of the metric.
    """
    options = options or Options()
    tree, found = patterns_in(given, options)
    chosen = asked or _first(found.patterns)
    if chosen is None:
        return found
    return replace(found, explanation=explained(tree, chosen, options, deadlines, driven=asked is not None))


def patterns_in(given: CallTree, options: Options) -> tuple[Tree, Variance]:
    """The patterns, without an explanation, and the cleaned tree that functions are explained from."""
    tree, (found,) = swept(given, [options])
    return tree, found


def swept(given: CallTree, several: Sequence[Options]) -> tuple[Tree, list[Variance]]:
    """The patterns under several pressures and trims, as a programmer tries them (§8.1): labels are those of the first."""
    tree = Tree(cleaned(given))
    labels = label(tree, several[0])
    passing, extracted = passing_of(labels), extract(tree, labels)
    merged = {
        (pressure, paper): ordered(Merger(passing, pressure, paper).everything(extracted))
        for pressure, paper in {(one.pressure, one.paper) for one in several}
    }
    found = []
    for one in several:
        vertices = merged[one.pressure, one.paper]
        patterns = patterns_of(tree, trimmed(vertices, one.trim, passing, frozenset()), passing, one)
        few = sum(stats.n < one.least for stats in tree.stats[1:])
        sizes = count(extracted), count(vertices)
        found.append(Variance(given.metric, patterns, *sizes, tree.size - 1, few, notes=tree.given.notes))
    return tree, found


def explained(
    tree: Tree, component: Component, options: Options, deadlines: Sequence[float], driven: bool
) -> Explanation | None:
    """Why a function is sometimes slow; what drives it where ``driven``. None where no call of it completed."""
    number = tree.given.components.index(component)
    found = explain(tree, number, options, deadlines)
    if not found or not driven:
        return found
    from perflaw.learn.variance.drivers import drivers  # the law learner takes long to import

    return replace(found, drivers=drivers(tree, contexts_of(tree, number), options))


def _first(patterns: Sequence[Pattern]) -> Component | None:
    return patterns[0].nodes[0].component if patterns else None


# ---- Patterns with the explanations of many functions, for a page that shows them all.

POINTS: Final = 40
"""Deadlines at which the curve of misses is known."""
BEYOND: Final = 1.5
"""The last of them, in parts of the slowest call: where Chebyshev's bound goes on and the record ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The patterns of one metric, and the tree that any function can be explained from."""

    tree: Tree
    """The call tree, interruptions taken out."""
    found: Variance
    """Its patterns, without an explanation."""
    options: Options
    """How they were found."""

    def explained(self, component: Component, driven: bool) -> Explanation | None:
        """Why it is sometimes slow, with a whole curve of deadlines; None where no call of it completed."""
        if component not in self.tree.given.components:
            return None
        return explained(self.tree, component, self.options, self._deadlines(component), driven)

    def _deadlines(self, component: Component) -> list[float]:
        """From the fastest call to beyond the slowest, evenly on a logarithmic axis."""
        seen = observed(self.tree, contexts_of(self.tree, self.tree.given.components.index(component)))
        values = seen.values[(seen.values > 0) & (seen.weight > 0)] if seen is not None else np.zeros(0)
        if not len(values):
            return []
        low, high = float(values.min()) / BEYOND, float(values.max()) * BEYOND
        return [float(one) for one in np.geomspace(low, high, POINTS)]


def survey(given: CallTree, options: Options | None = None) -> Survey:
    """The patterns of a call tree, ready to explain its functions."""
    options = options or Options()
    tree, found = patterns_in(given, options)
    return Survey(tree, found, options)
