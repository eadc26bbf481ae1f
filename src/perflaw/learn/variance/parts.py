"""The parts of a function's cost and their covariances: X = ΣY_i (Equations 1 and 2), exactly, over any set of contexts.

Contexts of one function are put together by call site: sums add, and so do products of parts of one invocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflaw.learn.variance.sums import Link, Stats, pooled
from perflaw.learn.variance.tree import Tree
from perflaw.types.call_trees import LOCAL
from perflaw.types.variance import Split

Key = tuple[int, int]
"""Call site and callee; (LOCAL, LOCAL) is own code."""
OWN: Key = (LOCAL, LOCAL)


@dataclass(frozen=True, slots=True)
class Parts:
    """Sums of the parts of invocations; numerators are over N²."""

    function: int
    """Number of the function."""
    total: Stats
    """Moments of X."""
    keys: tuple[Key, ...]
    """The parts: own code first, then call sites in a canonical order."""
    nodes: tuple[tuple[int, ...], ...]
    """Nodes of each part; none for own code."""
    sums: tuple[Link, ...]
    """Sums of each part; of own code only n, y and yx."""
    covariance: tuple[tuple[int | None, ...], ...]
    """N²·C_ij, None where products were not kept."""

    @property
    def net(self) -> tuple[int, ...]:
        """N²·Cov(Y_i, X): they add up to N²·Var(X)."""
        return tuple(self.total.n * one.yx - one.y * self.total.x for one in self.sums)


def parts_of(tree: Tree, heads: Sequence[int]) -> Parts:
    """The parts of the invocations of these nodes, which are contexts of one function."""
    total = tree.total(heads)
    callees = {head: _callees(tree, head) for head in heads}
    found: dict[Key, list[tuple[int, int]]] = {}
    for head, nodes in callees.items():
        for node in nodes:
            found.setdefault(tree.key(node), []).append((head, node))
    order = sorted(found, key=lambda key: min(tree.rank[node] for _, node in found[key]))
    sums = [pooled(tree.links[head][node] for head, node in found[key]) for key in order]
    own = Link(total.n, 0, 0, 0, 0, total.x - sum(s.y for s in sums), 0, total.xx - sum(s.yx for s in sums))
    every, keys = (own, *sums), (OWN, *order)
    nodes_of = ((), *(tuple(sorted({node for _, node in found[key]})) for key in order))
    return Parts(
        tree.component[heads[0]], total, keys, nodes_of, every, _covariance(tree, callees, keys, every, total.n)
    )


def _callees(tree: Tree, head: int) -> list[int]:
    """Nodes that an invocation calls directly. Of a folded recursion they may lie above it."""
    direct = {node for pair in tree.pairs[head] for node in pair if node >= 0} | set(tree.children[head])
    return sorted(node for node in direct if node in tree.links[head])


def _covariance(
    tree: Tree, callees: dict[int, list[int]], keys: Sequence[Key], sums: Sequence[Link], n: int
) -> tuple[tuple[int | None, ...], ...]:
    """N·P_ij − ΣY_i·ΣY_j, symmetric."""
    place = {key: index for index, key in enumerate(keys)}
    products: list[list[int | None]] = [[0] * len(keys) for _ in keys]
    for head, nodes in callees.items():
        parts = [(0, LOCAL), *((place[tree.key(node)], node) for node in nodes)]
        for a, (i, one) in enumerate(parts):
            for j, two in parts[a:]:
                product = _product(tree, head, one, two)
                twice = 2 if i == j and one != two else 1  # two callees of one key: both orders are in its square
                _add(products, i, j, None if product is None else twice * product)
    return tuple(
        tuple(None if p is None else n * p - sums[i].y * sums[j].y for j, p in enumerate(row))
        for i, row in enumerate(products)
    )


def _product(tree: Tree, head: int, one: int, two: int) -> int | None:
    """ΣY_i·Y_j; a callee's own square is in its link whatever became of the pairs."""
    if one == two and one != LOCAL:
        return tree.links[head][one].yy
    return tree.product(head, one, two)


def _add(products: list[list[int | None]], i: int, j: int, product: int | None) -> None:
    for row, column in {(i, j), (j, i)}:
        before = products[row][column]
        products[row][column] = None if before is None or product is None else before + product


# ---- What of a part varies: whether it is called, how often, or what a call costs.


def split(sums: Link, n: int) -> Split:
    """Var(Y) over ``n`` invocations taken apart; the three parts add up to it.

    Between invocations that call it and those that do not lies p(1 − p)·E[Y | called]²; within those that do, trip count
    explains Cov(K, Y)²/Var(K), the best that a straight line in K can; the rest is the cost per call.

    >>> split(Link(n=4, once=0, k=12, kk=40, ky=200, y=60, yy=1000, yx=0), 4)  # Y = 5K, K in {2, 4}
    Split(called=0.0, trips=25.0, cost=0.0)
    """
    called = sums.n
    if not called or not n:
        return Split(0.0, 0.0, 0.0)
    between = (n - called) * sums.y * sums.y / (called * n * n)
    squares = called * sums.yy - sums.y * sums.y  # called²·Var(Y | called)
    trips = called * sums.kk - sums.k * sums.k
    both = called * sums.ky - sums.k * sums.y
    by_trips = both * both / (trips * called * n) if trips else 0.0
    within = squares / (called * n)
    return Split(between, min(by_trips, within), max(within - by_trips, 0.0))
