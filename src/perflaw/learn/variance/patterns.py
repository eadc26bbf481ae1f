"""Patterns as they are reported: numbered nodes and back-edges with their shares; and patterns of two recordings compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from perflaw.learn.variance.cause import find_cause, off_cpu_share, stats_by_metric
from perflaw.learn.variance.labels import SegmentsByNode, Vertex
from perflaw.learn.variance.moments import Stats, pooled
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.tree import Tree
from perflaw.types.variance import (
    Contribution,
    Pattern,
    PatternChange,
    PatternNode,
    ShareChange,
    Step,
    Variance,
)


def patterns_of(
    tree: Tree, vertices: Sequence[Vertex], segments: SegmentsByNode, options: Options
) -> tuple[Pattern, ...]:
    """The patterns in the order given, their nodes numbered depth first."""
    lines = {(tree.component[tree.parent[node]], tree.site[node]): tree.line[node] for node in range(1, tree.size)}
    result: list[Pattern] = []
    numbers: dict[Vertex, int] = {}
    for root in vertices:
        rows = list(_with_parents(root, None))
        numbers |= {vertex: number for number, (vertex, _) in enumerate(rows, len(numbers))}
        nodes = tuple(_node(tree, lines, numbers, vertex, parent, options) for vertex, parent in rows)
        edges = [edge for vertex, _ in rows for edge in _back_edges(tree, vertex, numbers, segments, options.paper)]
        result.append(Pattern(nodes, tuple(edges)))
    return tuple(result)


def _with_parents(vertex: Vertex, parent: Vertex | None) -> Iterator[tuple[Vertex, Vertex | None]]:
    yield vertex, parent
    for child in vertex.children:
        yield from _with_parents(child, vertex)


def _node(
    tree: Tree,
    lines: dict[tuple[int, int], int],
    numbers: dict[Vertex, int],
    vertex: Vertex,
    parent: Vertex | None,
    options: Options,
) -> PatternNode:
    """The node of a vertex; ``lines`` are source lines by caller and call site."""
    stats, heads = vertex.stats, sorted(vertex.members)
    contexts = [
        tuple(Step(tree.name(caller), lines.get((caller, site), 0), site, tree.name(to)) for caller, site, to in path)
        for path in vertex.contexts
    ]
    contexts.sort(key=lambda path: [(step.caller, step.site, step.callee) for step in path])
    by_metric = stats_by_metric(tree, heads)
    off_cpu = off_cpu_share(tree, heads, by_metric, options)
    return PatternNode(
        numbers[vertex],
        None if parent is None else numbers[parent],
        tree.call_tree.components[vertex.function],
        vertex.kind,
        stats.n,
        stats.mean,
        stats.cov,
        float(stats.x),
        vertex.vim,
        tuple(contexts),
        find_cause(by_metric, tree.call_tree.metric.name, off_cpu, options, tree.noise),
        off_cpu,
    )


def _back_edges(
    tree: Tree, head: Vertex, numbers: dict[Vertex, int], segments: SegmentsByNode, paper: bool
) -> list[Contribution]:
    """Back-edges to a vertex: how much of its variance comes from each vertex below, the largest share first (§6.1)."""

    def paths_below(vertex: Vertex, above: tuple[Vertex, ...]) -> Iterator[tuple[Vertex, ...]]:
        for child in vertex.children:
            yield (*above, child)
            yield from paths_below(child, (*above, child))

    found = []
    for path in paths_below(head, (head,)):
        end = path[-1]
        ending = ((start, node) for node in end.members for start, last in segments.get(node, ()) if last == node)
        if any(start in head.members for start, _ in ending):
            heads, ends = sorted(head.members), sorted(end.members)
            total = tree.total(heads)
            sums = pooled(tree.links[node][inner] for node in heads for inner in ends if inner in tree.links[node])
            within = pooled_cost(tree, heads, ends) if paper else cost_within(tree, heads, ends)
            cf_self = within.variance * total.n**2 / total.spread if within else None
            cf_net = sums.net(total) / total.spread
            ids = tuple(numbers[each] for each in path)
            found.append(Contribution(numbers[head], numbers[end], ids, cf_self, cf_net))
    return sorted(found, key=lambda edge: (-edge.cf_net, edge.source))


def cost_within(tree: Tree, heads: Sequence[int], ends: Sequence[int]) -> Stats | None:
    """Moments of Y, the cost of all ends together in an invocation of a head; None if a product was not kept.

    Contexts below one head add up to one Y, whose square contains their products. Below a head that has none of them, Y
    is 0 in all invocations.
    """
    total = Stats(0, 0, 0)
    for head in heads:
        inner = [end for end in ends if end in tree.links[head]]
        products = 0
        for place, a in enumerate(inner):
            for b in inner[place + 1 :]:
                product = _product_within(tree, head, a, b)
                if product is None:
                    return None
                products += 2 * product
        sums = pooled(tree.links[head][end] for end in inner)
        total += Stats(tree.stats[head].n, sums.y, sums.yy + products)
    return total


def _product_within(tree: Tree, head: int, a: int, b: int) -> int | None:
    """ΣY_a·Y_b over the invocations of a head; None if it was not kept.

    Products are kept of two calls of one caller, in each of the caller's invocations. They are the head's if the caller
    is the head, or is called at most once in each of the head's invocations.
    """
    caller = tree.parent[a]
    if tree.parent[b] != caller:
        return None
    within = tree.links[head].get(caller)
    if caller == head or (within is not None and within.once == within.n):
        return tree.product(caller, a, b)
    return None


def pooled_cost(tree: Tree, heads: Sequence[int], ends: Sequence[int]) -> Stats:
    """The paper's formula of §6.1, applied within one head as well: the head's invocations count once for each end."""
    total = Stats(0, 0, 0)
    for head in heads:
        for sums in (tree.links[head][end] for end in ends if end in tree.links[head]):
            total += Stats(tree.stats[head].n, sums.y, sums.yy)
    return total


# ---- Two recordings compared.

MIN_SHARE_CHANGE: Final = 0.1
"""Change of a share of the variance from which on it matters."""
MIN_COV_RATIO: Final = 1.5
"""Ratio of two coefficients of variation from which on they differ."""


def compare(old: Variance, new: Variance) -> tuple[PatternChange, ...]:
    """Which patterns appeared, went, or changed where their variance comes from.

    The patterns of the new recording come first, in their order.
    """
    left, changes = list(old.patterns), []
    for pattern in new.patterns:
        counterpart = _counterpart(pattern, left)
        if counterpart is not None:
            left.remove(counterpart)
        changes.append(_change(counterpart, pattern))
    return (*changes, *(_change(pattern, None) for pattern in left))


def _counterpart(pattern: Pattern, candidates: Sequence[Pattern]) -> Pattern | None:
    """The candidate with the same root; of several the one with most call paths and functions in common."""

    def root(one: Pattern) -> tuple[str, str]:
        return one.nodes[0].component.name, one.nodes[0].kind

    def functions(one: Pattern) -> set[str]:
        return {node.component.name for node in one.nodes}

    def call_paths(one: Pattern) -> set[tuple[str, ...]]:
        # Paths are compared by names, because call sites move where code is edited.
        return {tuple(step.callee for step in path) for path in one.nodes[0].contexts}

    return max(
        (one for one in candidates if root(one) == root(pattern)),
        key=lambda one: (len(call_paths(one) & call_paths(pattern)), len(functions(pattern) & functions(one))),
        default=None,
    )


def _change(old: Pattern | None, new: Pattern | None) -> PatternChange:
    """The change of a pattern, of which one side may be missing."""
    pattern = new or old
    assert pattern is not None
    component = pattern.nodes[0].component
    roots = (old.nodes[0] if old else None, new.nodes[0] if new else None)
    before, now = (_shares_by_path(one) if one else {} for one in (old, new))
    moved = tuple(
        ShareChange(path, before.get(path), now.get(path))
        for path in sorted({**before, **now})
        if abs(now.get(path, 0.0) - before.get(path, 0.0)) >= MIN_SHARE_CHANGE
    )
    if old is None or new is None:
        own = tuple(change for change in moved if change.path[0] == component.name)
        return PatternChange(component, "appeared" if new else "went", *roots, own)
    low, high = sorted((old.nodes[0].cov, new.nodes[0].cov))
    differs = bool(moved) or high >= MIN_COV_RATIO * low > 0
    return PatternChange(component, "changed" if differs else "stays", *roots, moved)


def _shares_by_path(pattern: Pattern) -> dict[tuple[str, ...], float]:
    """Names along a segment → share of the variance; shares of segments with the same names add up."""
    names = {node.id: node.component.name for node in pattern.nodes}
    found: dict[tuple[str, ...], float] = {}
    for edge in pattern.contributions:
        path = tuple(names[one] for one in edge.path)
        found[path] = found.get(path, 0.0) + edge.cf_net
    return found
