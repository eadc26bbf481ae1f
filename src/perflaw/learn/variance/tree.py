"""A call tree as the learner walks it: callees and sums by node, and an order of nodes that no numbering changes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from perflaw.learn.variance.alike import Alike
from perflaw.learn.variance.disturbances import disturbed
from perflaw.learn.variance.nodewise import nodewise
from perflaw.learn.variance.speed import speeds
from perflaw.learn.variance.sums import Link, Stats
from perflaw.types.call_trees import OTHER, CallTree
from perflaw.types.explanations import Step


class Tree:
    """Read-only views of a call tree, made once an analysis."""

    def __init__(self, tree: CallTree) -> None:
        moments, links, pairs = tree.moments[tree.metric.name], tree.links, tree.pairs
        self.given = tree
        self.parent: list[int] = tree.parent.tolist()
        self.component: list[int] = tree.component.tolist()
        self.site: list[int] = tree.site.tolist()
        self.line: list[int] = tree.site_line.tolist()
        self.size = len(self.parent)
        sums = zip(moments.n.tolist(), moments.sum_x.tolist(), moments.sum_xx.tolist(), strict=True)
        self.stats = [Stats(*row) for row in sums]
        self.children = _children(self.parent)
        self.links: list[dict[int, Link]] = [{} for _ in self.parent]
        columns = (getattr(links, name).tolist() for name in links.__slots__)
        for ancestor, descendant, *row in zip(*columns, strict=True):
            self.links[ancestor][descendant] = Link(*row)
        self.pairs: list[dict[tuple[int, int], int]] = [{} for _ in self.parent]
        columns = (getattr(pairs, name).tolist() for name in pairs.__slots__)
        for node, i, j, total in zip(*columns, strict=True):
            self.pairs[node][i, j] = total
        self.folded = {node for node, found in enumerate(self.pairs) if (OTHER, OTHER) in found}
        """Nodes some of whose pairs were put together: a missing pair is then unknown, and not 0."""
        self.noise = tree.clock_noise if tree.metric.unit == "ns" else 0.0
        """What σ must exceed to be more than the clock's."""
        self.disturbed = disturbed(tree.samples) if self.noise and tree.samples else np.zeros(0, np.bool_)
        """(S,) sampled invocations that a switch made dearer, where the clock has noise."""
        self.speed = speeds(tree.samples) if self.noise and tree.samples else np.zeros(0)
        """(S,) how many times dearer the machine was then."""
        self.nodewise = nodewise(tree) if self.noise and tree.samples else None
        """The samples weighted context by context, where the clock has noise."""
        self.alike = Alike(tree, self.nodewise, ~self.disturbed) if self.nodewise else None
        """What all code varies alike, where the clock has noise."""
        self.rank = _ranks(self)

    def key(self, node: int) -> tuple[int, int]:
        """What tells a node apart from others below the same parent: call site and function."""
        return self.site[node], self.component[node]

    def product(self, node: int, i: int, j: int) -> int | None:
        """ΣY_i·Y_j over invocations of a node; None where it was not kept."""
        found = self.pairs[node].get((i, j) if i <= j else (j, i))
        return found if found is not None or node in self.folded else 0

    def total(self, nodes: Iterable[int]) -> Stats:
        """Moments of the invocations of several nodes."""
        result = Stats(0, 0, 0)
        for node in nodes:
            result += self.stats[node]
        return result

    def path(self, node: int, above: int = 0) -> tuple[int, ...]:
        """Nodes from below an ancestor (the root) down to a node."""
        found = []
        while node > 0 and node != above:
            found.append(node)
            node = self.parent[node]
        return tuple(reversed(found))

    def steps(self, nodes: Iterable[int]) -> tuple[Step, ...]:
        """The calls that lead along such nodes."""
        return tuple(self.step(self.component[self.parent[node]], node) for node in nodes)

    def step(self, caller: int, node: int) -> Step:
        """The call that leads from a function to a node."""
        return Step(self.name(caller), self.line[node], self.site[node], self.name(self.component[node]))

    def name(self, component: int) -> str:
        """Name of a function by its number; empty for what is outside any."""
        return self.given.components[component].name if component >= 0 else ""


def _children(parent: list[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent):
        if above >= 0:
            children[above].append(node)
    return children


def _ranks(tree: Tree) -> list[int]:
    """Place of each node in the order of call paths by names, files and sites: the same however nodes are numbered."""
    what = [(one.name, one.file, one.line) for one in tree.given.components]

    def key(node: int) -> tuple[object, ...]:
        return (*what[tree.component[node]], tree.site[node])

    ranks, order = [0] * tree.size, [0]
    for node in order:
        order.extend(sorted(tree.children[node], key=key))
    for place, node in enumerate(order):
        ranks[node] = place
    return ranks
