"""Back-edges: how much of a vertex's variance comes from another below it (§6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perflaw.learn.variance.joining import Passing
from perflaw.learn.variance.sums import Link, Stats, pooled
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.vertex import Vertex
from perflaw.types.variance import Contribution


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
