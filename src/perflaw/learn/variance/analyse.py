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
    options, given = options or Options(), cleaned(given)
    tree = Tree(given)
    labels = label(tree, options)
    passing = passing_of(labels)
    extracted = extract(tree, labels)
    merged = Merger(passing, options.pressure, options.paper).everything(extracted)
    kept = trimmed(ordered(merged), options.trim, passing, frozenset())
    patterns = patterns_of(tree, kept, passing, options)
    chosen = asked or _first(patterns)
    return Variance(
        given.metric,
        patterns,
        count(extracted),
        count(merged),
        tree.size - 1,
        sum(stats.n < options.least for stats in tree.stats[1:]),
        _explained(tree, chosen, options, deadlines, driven=asked is not None) if chosen else None,
        given.notes,
    )


def _explained(
    tree: Tree, component: Component, options: Options, deadlines: Sequence[float], driven: bool
) -> Explanation | None:
    number = tree.given.components.index(component)
    found = explain(tree, number, options, deadlines)
    if not found or not driven:
        return found
    from perflaw.learn.variance.drivers import drivers  # the law learner takes long to import

    return replace(found, drivers=drivers(tree, contexts_of(tree, number), options))


def _first(patterns: Sequence[Pattern]) -> Component | None:
    return patterns[0].nodes[0].component if patterns else None
