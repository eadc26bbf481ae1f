"""Labels of calling contexts and the patterns extracted from them (§5; §7, steps 2 and 3).

A context is labelled by whether its own cost is of high variance and by the linear segments that it lies on: paths from a
head of high variance to an underlier, where that variance comes from. Labelled contexts become the vertices of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from perflaw.learn.variance.moments import Link, Stats, pooled
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.tree import Tree, is_high
from perflaw.types.variance import Kind

Group = tuple[tuple[int, int], ...]
"""Pairs of a head and a node below it: one relative call path below every head that has it."""
PAPER_ONCE: Final = 0.95
"""Probability of exactly one call from which on the paper descends into a callee."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A linear segment: the path from a head to what underlies it (§5)."""

    groups: tuple[Group, ...]
    """The path below the head, one group for each call; the last is the underlier."""
    sums: Link
    """Sums of the underlier within the heads' invocations."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes of the path below a single head."""
        return tuple(group[0][1] for group in self.groups)


def underliers(tree: Tree, heads: Sequence[int], options: Options) -> list[Segment]:
    """Segments from heads, contexts of one function, to their underliers; no two end on one path (§2.2).

    The walk goes down through calls whose share of the head's variance is significant, and ends at a node if the
    variance that these calls leave unexplained is significant as well. This is exact and takes one pass, where the paper
    profiles again and again.
    """
    total = tree.total(heads)
    if total.spread <= 0:
        return []
    walk = _Walk(tree, total, options)
    for group, _ in walk.significant(tuple((head, head) for head in heads)):
        walk.visit((group,))
    return walk.segments


class _Walk:
    """A walk down from some heads."""

    def __init__(self, tree: Tree, total: Stats, options: Options) -> None:
        self.tree, self.total, self.paper = tree, total, options.paper
        self.threshold = options.theta * total.spread
        """N² times the variance that is significant."""
        self.segments: list[Segment] = []

    def visit(self, path: tuple[Group, ...]) -> None:
        """Follow a path further down; record a segment if it ends here."""
        sums, below = self._sums(path[-1]), self.significant(path[-1])
        explained = sum(share for _, share in below)
        # The paper walks on as long as any call is significant.
        ends = not below if self.paper else sums.net(self.total) - explained >= self.threshold
        if ends:
            self.segments.append(Segment(path, sums))
            return
        for child, _ in below:
            self.visit((*path, child))

    def significant(self, group: Group) -> list[tuple[Group, float]]:
        """Calls made at the end of a path with a significant share of the heads' variance, and N²·share.

        The paper's share is C_WW of its contribution fraction. Calls are in a canonical order.
        """
        calls: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for head, node in group:
            for callee in self.tree.children[node]:
                if callee in self.tree.links[head]:
                    calls.setdefault(self.tree.key(callee), []).append((head, callee))
        found: list[tuple[Group, float]] = []
        for key in sorted(calls, key=lambda key: min(self.tree.rank[node] for _, node in calls[key])):
            child = tuple(calls[key])
            sums = self._sums(child)
            share = sums.spread(self.total.n) if self.paper else sums.net(self.total)
            if share >= self.threshold and self._descends(group, child):
                found.append((child, share))
        return found

    def _sums(self, group: Group) -> Link:
        return pooled(self.tree.links[head][node] for head, node in group)

    def _descends(self, group: Group, child: Group) -> bool:
        """The paper's heuristic: below the first call the walk goes on only where callees are called once."""
        if not self.paper or all(head == node for head, node in group):
            return True
        links, parents = self.tree.links, [self.tree.parent[node] for _, node in child]
        ends = zip(parents, (node for _, node in child), strict=True)
        once = sum(links[parent][node].once for parent, node in ends if node in links[parent])
        return once >= PAPER_ONCE * sum(self.tree.stats[parent].n for parent in parents)


SegmentsByNode = Mapping[int, frozenset[tuple[int, int]]]
"""Node → head and end of each linear segment that it lies on; heads are left out."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a tree's nodes."""

    segments: dict[int, tuple[tuple[int, ...], ...]]
    """Head → the paths of its linear segments, the head itself left out."""
    kinds: dict[int, Kind]
    """Node → its type; nodes without a label are missing."""

    def segments_by_node(self) -> SegmentsByNode:
        """Linear segments by the nodes that lie on them."""
        found: dict[int, set[tuple[int, int]]] = {}
        for head, paths in self.segments.items():
            for path in paths:
                for node in path:
                    found.setdefault(node, set()).add((head, path[-1]))
        return {node: frozenset(segments) for node, segments in found.items()}


def label(tree: Tree, options: Options) -> Labels:
    """Segments and types of all nodes: independent flags first, then Task, Contributor and Contrast derived from them.

    High variance needs at least ``options.least`` invocations, and so do heads of segments and contrasts.
    """
    high = {node for node in range(1, tree.size) if is_high(tree, (node,), tree.stats[node], options)}
    segments = {node: tuple(one.nodes for one in underliers(tree, (node,), options)) for node in sorted(high)}
    segments = {node: paths for node, paths in segments.items() if paths}
    underlie = {path[-1] for paths in segments.values() for path in paths}
    transmit = {node for paths in segments.values() for path in paths for node in path[:-1]}
    functions = {tree.component[node] for node in high | underlie}
    kinds: dict[int, Kind] = {}
    for node in range(1, tree.size):
        # High variance that a node only passes on is observed principally at the head; the paper's list of types (§5)
        # makes every such node a contrast.
        ends_segment = not options.paper and (node in segments or node in underlie)
        if node in high and (node not in transmit or ends_segment):
            kinds[node] = "Task"
        elif node in underlie and node not in high:
            kinds[node] = "Contributor"
        elif node in transmit or (tree.component[node] in functions and tree.stats[node].n >= options.least):
            kinds[node] = "Contrast"
    return Labels(segments, kinds)


Call = tuple[int, int, int]
"""Caller's function, call site, callee."""
CallPath = tuple[Call, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Vertex:
    """A node of a pattern with all below it: a set of calling contexts.

    Its statistics are sums over these contexts, so merging is union: exact, and in any order. Linear segments stay those
    between calling contexts: a vertex lies on every segment that one of its contexts lies on.
    """

    function: int
    """Number of the function."""
    kind: Kind
    """Its type, which never changes after extraction."""
    members: frozenset[int]
    """Nodes of the tree."""
    contexts: frozenset[CallPath]
    """Call-context set: paths from the pattern's parent, or from the root of the tree."""
    stats: Stats
    """Moments over the members."""
    order: int
    """Smallest rank of the members, which breaks ties."""
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


def in_order(vertices: Iterable[Vertex]) -> list[Vertex]:
    """Vertices by the smallest rank of their members."""
    return sorted(vertices, key=lambda vertex: vertex.order)


def extract(tree: Tree, labels: Labels) -> list[Vertex]:
    """The labelled nodes as trees: a node's parent is its nearest labelled ancestor."""
    below: dict[int, list[Vertex]] = {}
    roots = below[0] = []
    # Children have greater ranks than their parents: going backwards, all below a node is ready.
    for node in sorted(labels.kinds, key=lambda node: -tree.rank[node]):
        above = tree.parent[node]
        while above > 0 and above not in labels.kinds:
            above = tree.parent[above]
        path = tree.path(node, above)
        context = tuple((tree.component[tree.parent[one]], tree.site[one], tree.component[one]) for one in path)
        vertex = Vertex(
            tree.component[node],
            labels.kinds[node],
            frozenset((node,)),
            frozenset((context,)),
            tree.stats[node],
            tree.rank[node],
            tuple(in_order(below.pop(node, []))),
        )
        below.setdefault(above, []).append(vertex)
    return in_order(roots)
