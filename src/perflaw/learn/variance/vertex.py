"""Vertices of patterns and their extraction from the tree (§7, step 3). A vertex is a set of calling contexts.

Statistics of a vertex are sums over its contexts, so merging is union, exact and in any order. Linear segments stay those
between calling contexts: a vertex lies on every segment that one of its contexts lies on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from perflaw.learn.variance.options import Options
from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.underliers import underliers
from perflaw.learn.variance.weighted import Floats
from perflaw.types.recordings import CPU
from perflaw.types.variance import Kind

# ---- Whether a cost varies highly (§2.1), and more than the machine makes it.
#
# After a switch the caches are cold: the calls that follow cost more CPU time, whatever they do. And in phases the
# machine is
# slower, for all code. On a busy machine that is high variance by itself; so what is high by CPU time must be so
# without calls
# after a switch as well, after the machine's speed is divided out, and more than all other code of that length
# varies.

ENOUGH: Final = 0.5
"""Part of the invocations that must be undisturbed to say anything."""


def is_high(tree: Tree, heads: Sequence[int], stats: Stats, options: Options) -> bool:
    """Whether the invocations of these nodes, with these moments, are of high variance."""
    if stats.n < options.least or not stats.is_high(options.high, tree.noise):
        return False
    if tree.given.metric.name != CPU.name or not tree.noise or tree.given.samples is None:
        return True
    bound = 1 + options.high**2
    assert tree.nodewise is not None and tree.alike is not None
    mean = max(stats.x / stats.n, 1.0)
    if stats.xx / stats.n / mean**2 / tree.alike.squares(mean) < bound:
        return False
    x, speed, weight = _quiet(tree, heads)
    if weight.sum() < ENOUGH * stats.n or (len(x) < options.least and not tree.nodewise.complete):
        return True
    machine = max(_squares(speed, weight), tree.alike.squares(mean, quiet=True))
    most = _squares(x, weight) / machine  # of a product of independent factors they multiply
    return min(most, _squares(x / speed, weight)) >= bound


def _squares(x: Floats, weight: Floats) -> float:
    """E[x²]/E[x]², 1 + CoV²."""
    mean = float(weight @ x / weight.sum())
    return float(weight @ (x * x) / weight.sum()) / mean**2 if mean > 0 else 1.0


def _quiet(tree: Tree, heads: Sequence[int]) -> tuple[Floats, Floats, Floats]:
    """Costs of undisturbed invocations, the machine's factor then, and how many invocations each speaks for."""
    samples, by_node = tree.given.samples, tree.nodewise
    assert samples is not None and by_node is not None
    nodes = np.asarray(heads, dtype=np.int64)
    quiet = np.isin(samples.node, nodes) & ~tree.disturbed
    unseen = np.isin(by_node.node, nodes)
    x = np.concatenate([samples.x[quiet], by_node.value[unseen]])
    speed = np.concatenate([tree.speed[quiet], np.ones(np.count_nonzero(unseen))])
    return x, speed, np.concatenate([by_node.weight[quiet], by_node.count[unseen]])


# ---- Labels of nodes (§5): independent flags first, then Task, Contributor and Contrast derived from them.


@dataclass(frozen=True, slots=True)
class Labels:
    """What was found of every node of a tree."""

    high: frozenset[int]
    """Nodes of high variance with enough invocations."""
    segments: dict[int, tuple[tuple[int, ...], ...]]
    """Head → the paths of its linear segments, the head itself left out."""
    underlies: frozenset[int]
    """Ends of linear segments."""
    transmits: frozenset[int]
    """Nodes within linear segments."""
    kinds: dict[int, Kind]
    """Node → its type; nodes without a label are missing."""


def label(tree: Tree, options: Options) -> Labels:
    """Flags and types of all nodes. High variance needs ``options.least`` invocations; so do heads of segments."""
    high = frozenset(
        node for node in range(1, tree.size)
        if is_high(tree, (node,), tree.stats[node], options)
    )  # fmt: skip
    segments = {node: tuple(one.nodes for one in underliers(tree, (node,), options)) for node in sorted(high)}
    segments = {node: found for node, found in segments.items() if found}
    paths = [path for found in segments.values() for path in found]
    underlies = frozenset(path[-1] for path in paths)
    transmits = frozenset(node for path in paths for node in path[:-1])
    labels = Labels(high, segments, underlies, transmits, {})
    used = {tree.component[node] for node in high | underlies}
    for node in range(1, tree.size):
        kind = _kind(labels, node, tree.component[node] in used, options)
        if kind and (kind != "Contrast" or node in transmits or tree.stats[node].n >= options.least):
            labels.kinds[node] = kind
    return labels


def _kind(labels: Labels, node: int, used: bool, options: Options) -> Kind | None:
    if node in labels.high and _observed(labels, node, options):
        return "Task"
    if node in labels.underlies and node not in labels.high:
        return "Contributor"
    return "Contrast" if used or node in labels.transmits else None


def _observed(labels: Labels, node: int, options: Options) -> bool:
    """Whether high variance is principally observed at a node, and not just passed on.

    The paper's list of types (§5) calls every transmitter a Contrast.
    """
    if node not in labels.transmits:
        return True
    return not options.paper and (node in labels.segments or node in labels.underlies)


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
