"""Vertices to the nouns a person sees: numbered nodes with their figures, and back-edges with their shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from perflaw.learn.variance.drivers import cause, off_cpu, stats_by_metric
from perflaw.learn.variance.merging import Passing
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.sums import Link, Stats, pooled
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.vertex import CallPath, Vertex
from perflaw.types.variance import Contribution, Pattern, PatternNode, Step

# ---- Back-edges: how much of a vertex's variance comes from another below it (§6.1).


def edges(tree: Tree, head: Vertex, ids: dict[int, int], passing: Passing, paper: bool) -> list[Contribution]:
    """Back-edges to a vertex, the largest share first; ``ids`` are numbers of vertices by identity."""
    found = []
    for path in _paths(head, ()):
        end = path[-1]
        if any(above in head.members and last == node for node in end.members for above, last in passing.get(node, ())):
            numbers = tuple(ids[id(one)] for one in (head, *path))
            shares = contribution(tree, head.members, end.members, paper)
            found.append(Contribution(ids[id(head)], ids[id(end)], numbers, *shares))
    return sorted(found, key=lambda edge: (-edge.cf_net, edge.source))


def _paths(vertex: Vertex, above: tuple[Vertex, ...]) -> Iterator[tuple[Vertex, ...]]:
    for child in vertex.children:
        yield (*above, child)
        yield from _paths(child, (*above, child))


def contribution(tree: Tree, heads: Iterable[int], ends: Iterable[int], paper: bool) -> tuple[float | None, float]:
    """cf_self and cf_net of some contexts within others."""
    heads, ends = sorted(heads), sorted(ends)
    total = tree.total(heads)
    sums = pooled(tree.links[head][end] for head in heads for end in ends if end in tree.links[head])
    within = pooled_cost(tree, heads, ends) if paper else cost_within(tree, heads, ends)
    cf_self = within.variance * total.n**2 / total.spread if within else None
    return cf_self, (total.n * sums.yx - sums.y * total.x) / total.spread


def cost_within(tree: Tree, heads: Sequence[int], ends: Sequence[int]) -> Stats | None:
    """Moments of Y, the cost of all ends together in an invocation of a head; None where a product was not kept.

    Contexts below one head add to one Y, so its square needs their products. Below a head that has none of them, Y is 0
    in all invocations.
    """
    total = Stats(0, 0, 0)
    for head in heads:
        inner = [end for end in ends if end in tree.links[head]]
        crossed = _crossed(tree, head, inner)
        if crossed is None:
            return None
        sums = pooled(tree.links[head][end] for end in inner)
        total += Stats(tree.stats[head].n, sums.y, sums.yy + crossed)
    return total


def pooled_cost(tree: Tree, heads: Sequence[int], ends: Sequence[int]) -> Stats:
    """The paper's formula of §6.1 within one head as well, where it counts the head's invocations once an end."""
    total = Stats(0, 0, 0)
    for head in heads:
        links: list[Link] = [tree.links[head][end] for end in ends if end in tree.links[head]]
        for sums in links:
            total += Stats(tree.stats[head].n, sums.y, sums.yy)
    return total


def _crossed(tree: Tree, head: int, inner: Sequence[int]) -> int | None:
    """2·ΣΣY_a·Y_b over pairs of contexts below one node; None where a product was not kept."""
    result = 0
    for place, a in enumerate(inner):
        for b in inner[place + 1 :]:
            product = _product(tree, head, a, b)
            if product is None:
                return None
            result += 2 * product
    return result


def _product(tree: Tree, head: int, a: int, b: int) -> int | None:
    """ΣY_a·Y_b within a node. Kept are products of two calls of one caller, in each of the caller's invocations.

    Those are the node's where the caller is the node, or is called once at most in each of the node's invocations.
    """
    caller = tree.parent[a]
    if tree.parent[b] != caller:
        return None
    within = tree.links[head].get(caller)
    if caller == head or (within is not None and within.once == within.n):
        return tree.product(caller, a, b)
    return None


def patterns_of(tree: Tree, vertices: Sequence[Vertex], passing: Passing, options: Options) -> tuple[Pattern, ...]:
    """The patterns with ids depth first, in the order given."""
    first, result, shown = 0, list[Pattern](), _Shown(tree, _lines(tree), options)
    for root in vertices:
        numbered = list(_numbered(root, None, first))
        ids = {id(vertex): number for number, _, vertex in numbered}
        nodes = tuple(_node(shown, *row) for row in numbered)
        found = [edge for _, _, one in numbered for edge in edges(tree, one, ids, passing, options.paper)]
        result.append(Pattern(nodes, tuple(found)))
        first += len(nodes)
    return tuple(result)


def _numbered(vertex: Vertex, parent: int | None, number: int) -> Iterator[tuple[int, int | None, Vertex]]:
    yield number, parent, vertex
    following = number + 1
    for child in vertex.children:
        rows = list(_numbered(child, number, following))
        yield from rows
        following += len(rows)


Lines = dict[tuple[int, int], int]
"""Caller and call site → source line."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What it takes to tell a node."""

    tree: Tree
    lines: Lines
    options: Options


def _lines(tree: Tree) -> Lines:
    return {(tree.component[tree.parent[node]], tree.site[node]): tree.line[node] for node in range(1, tree.size)}


def _node(shown: _Shown, number: int, parent: int | None, vertex: Vertex) -> PatternNode:
    tree, stats, heads = shown.tree, vertex.stats, sorted(vertex.members)
    contexts = sorted((_steps(shown, path) for path in vertex.contexts), key=_context_order)
    by_metric = stats_by_metric(tree, heads)
    off = off_cpu(tree, heads, by_metric, shown.options)
    return PatternNode(
        number,
        parent,
        tree.given.components[vertex.function],
        vertex.kind,
        stats.n,
        stats.mean,
        stats.cov,
        float(stats.x),
        vertex.vim,
        tuple(contexts),
        cause(by_metric, tree.given.metric.name, off, shown.options, tree.noise),
        off,
    )


def _context_order(path: tuple[Step, ...]) -> list[tuple[str, int, str]]:
    return [(step.caller, step.site, step.callee) for step in path]


def _steps(shown: _Shown, path: CallPath) -> tuple[Step, ...]:
    name, lines = shown.tree.name, shown.lines
    return tuple(Step(name(caller), lines.get((caller, site), 0), site, name(callee)) for caller, site, callee in path)
