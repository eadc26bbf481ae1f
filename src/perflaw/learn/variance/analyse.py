"""The steps of the analysis in their order (§7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perflaw.learn.variance.cleaning import cleaned
from perflaw.learn.variance.explain import contexts_of, explain
from perflaw.learn.variance.labels import label
from perflaw.learn.variance.merging import Merger, passing_of
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.order import ordered, trimmed
from perflaw.learn.variance.patterns import patterns_of
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.vertex import count, extract
from perflaw.types.call_trees import CallTree
from perflaw.types.explanations import Explanation
from perflaw.types.measured import Component
from perflaw.types.variance import Pattern, Variance


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
