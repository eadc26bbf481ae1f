"""Vertices of patterns and their extraction from the tree (§7, step 3). A vertex is a set of calling contexts.

Statistics of a vertex are sums over its contexts, so merging is union, exact and in any order. Linear segments stay those
between calling contexts: a vertex lies on every segment that one of its contexts lies on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perflaw.learn.variance.labels import Labels
from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.tree import Tree
from perflaw.types.variance import Kind

Call = tuple[int, int, int]
"""Caller's function, call site, callee."""
CallPath = tuple[Call, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Vertex:
    """A node of a pattern with all below it."""

    function: int
    """Number of the function."""
    kind: Kind
    """Its type; it never changes after extraction."""
    members: frozenset[int]
    """Nodes of the tree."""
    contexts: frozenset[CallPath]
    """Call-context set: paths from the pattern's parent, or from the root of the tree."""
    stats: Stats
    """Moments over the members."""
    order: int
    """Least rank of the members: what ties are broken by."""
    children: tuple[Vertex, ...] = ()
    """Vertices right below."""

    def walk(self) -> Iterator[Vertex]:
        """The vertex and all below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def vim(self) -> float:
        """Variance impact: σN, summed over the vertex and all below it (§4)."""
        return sum(one.stats.sigma * one.stats.n for one in self.walk())


def count(patterns: Iterable[Vertex]) -> tuple[int, int]:
    """Nodes and patterns."""
    sizes = [sum(1 for _ in pattern.walk()) for pattern in patterns]
    return sum(sizes), len(sizes)


def extract(tree: Tree, labels: Labels) -> list[Vertex]:
    """The labelled nodes as trees: a node's parent is its nearest labelled ancestor."""
    below: dict[int, list[Vertex]] = {}
    roots = below[0] = []
    # Children have greater ranks than their parents: from the last on, all below a node is ready.
    for node in sorted(labels.kinds, key=lambda node: -tree.rank[node]):
        above = tree.parent[node]
        while above > 0 and above not in labels.kinds:
            above = tree.parent[above]
        children = tuple(sorted(below.pop(node, []), key=_order))
        vertex = _vertex(tree, node, above, labels.kinds[node], children)
        below.setdefault(above, []).append(vertex)
    return sorted(roots, key=_order)


def _order(vertex: Vertex) -> int:
    return vertex.order


def _vertex(tree: Tree, node: int, above: int, kind: Kind, children: tuple[Vertex, ...]) -> Vertex:
    path = tree.path(node, above)
    context = tuple((tree.component[tree.parent[one]], tree.site[one], tree.component[one]) for one in path)
    members, contexts = frozenset((node,)), frozenset((context,))
    return Vertex(tree.component[node], kind, members, contexts, tree.stats[node], tree.rank[node], children)
