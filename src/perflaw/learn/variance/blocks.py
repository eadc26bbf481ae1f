"""Minimal contributing sets (§2): parts that vary together, and the fewest of them that nearly explain their variance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from perflaw.types.explanations import Block, Relation

Matrix = Sequence[Sequence[int | None]]
MOST: Final = 12
"""Members up to which every subset of a block is tried."""
NEARLY: Final = 0.2
"""A subset explains its block where its variance differs by at most this part of the block's."""


def blocks(covariance: Matrix, net: Sequence[int], n: int, theta: float) -> tuple[Block, ...]:
    """The blocks, in order of their first members. Everything given is N² times what it says; ``n`` is N.

    >>> c = [[100, 0, 0], [0, 81, -81], [0, -81, 81]]
    >>> [(one.parts, one.variance, one.minimal) for one in blocks(c, [100, 0, 0], 1, 0.1)]
    [((0,), 100.0, (0,)), ((1, 2), 0.0, None)]
    """
    whole = sum(net)
    return tuple(_block(covariance, net, members, whole, n, theta) for members in _joined(covariance, whole, theta))


def _joined(covariance: Matrix, whole: int, theta: float) -> list[tuple[int, ...]]:
    """Connected components of the parts, joined where 2|C_ij| ≥ θσ²."""
    root = list(range(len(covariance)))

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    for i, j in combinations(range(len(covariance)), 2):
        if whole > 0 and 2 * abs(covariance[i][j] or 0) >= theta * whole:
            low, high = sorted((find(i), find(j)))
            root[high] = low
    found: dict[int, list[int]] = {}
    for i in range(len(covariance)):
        found.setdefault(find(i), []).append(i)
    return [tuple(members) for members in found.values()]


def _block(covariance: Matrix, net: Sequence[int], members: tuple[int, ...], whole: int, n: int, theta: float) -> Block:
    variance, share = variance_of(covariance, members), sum(net[i] for i in members)
    minimal = _minimal(covariance, members) if whole > 0 and share >= theta * whole else None
    net_share = share / whole if whole else 0.0
    return Block(members, variance / (n * n), net_share, minimal, _relation(covariance, minimal or members))


def variance_of(covariance: Matrix, members: Sequence[int]) -> int:
    """N²·Var of the sum of some parts; what was not recorded counts as 0."""
    return sum(covariance[i][j] or 0 for i in members for j in members)


def _minimal(covariance: Matrix, members: tuple[int, ...]) -> tuple[int, ...]:
    """The smallest subset with nearly the block's variance; of equal sizes the one with more."""
    if len(members) > MOST:
        return _greedy(covariance, members)
    goal = variance_of(covariance, members)
    for size in range(1, len(members)):
        near = [some for some in combinations(members, size) if _nearly(variance_of(covariance, some), goal)]
        if near:
            return max(near, key=lambda some: variance_of(covariance, some))
    return members


def _nearly(variance: int, goal: int) -> bool:
    return abs(variance - goal) <= NEARLY * goal


def _greedy(covariance: Matrix, members: tuple[int, ...]) -> tuple[int, ...]:
    """Leave out one after the other, always the one that changes least, as long as enough is left."""
    goal, kept = variance_of(covariance, members), list(members)
    variance = goal
    while len(kept) > 1:
        # Without i the variance loses its square and, twice, its products with the others.
        without = [variance - 2 * sum(covariance[i][j] or 0 for j in kept) + (covariance[i][i] or 0) for i in kept]
        best = min(range(len(kept)), key=lambda place: abs(without[place] - goal))
        if not _nearly(without[best], goal):
            break
        variance = without[best]
        del kept[best]
    return tuple(kept)


def _relation(covariance: Matrix, members: tuple[int, ...]) -> Relation:
    """Whether the products of the members are (nearly) all negative, all positive, or both."""
    if len(members) == 1:
        return "alone"
    products = [covariance[i][j] or 0 for i, j in combinations(members, 2)]
    below, above = -sum(p for p in products if p < 0), sum(p for p in products if p > 0)
    if min(below, above) > NEARLY * max(below, above):
        return "mixed"
    return "cancel" if below > above else "in step"
