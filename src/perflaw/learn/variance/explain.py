"""Why one function is sometimes slow, over all of its contexts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, Literal

import numpy as np

from perflaw.learn.variance.budget import budget
from perflaw.learn.variance.deadlines import bound, miss, observed
from perflaw.learn.variance.drivers import cause, off_cpu_interval, stats_by_metric
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.parts import OWN, Parts, parts_of, split
from perflaw.learn.variance.sampled import Sampled, sampled
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.underliers import Segment, underliers
from perflaw.learn.variance.vertex import is_high
from perflaw.types.recordings import Component
from perflaw.types.variance import (
    Block,
    Bound,
    Callee,
    Context,
    Deadline,
    Exemplar,
    Explanation,
    Part,
    Relation,
    Source,
)

# ---- Minimal contributing sets (§2): parts that vary together, and the fewest of them that nearly explain their
# variance.

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


# ---- Invocations to look at: the worst that were kept, and some at random.

WORST: Final = 8
RANDOM: Final = 4
_SEED: Final = 1
_Reason = Literal["worst", "random"]


def exemplars(tree: Tree, some: Sampled | None) -> tuple[Exemplar, ...]:
    """The worst, the worst first, then some of the uniform sample."""
    if some is None:
        return ()
    worst = some.places[::-1][:WORST]
    others = np.setdiff1d(some.places[some.samples.uniform[some.places]], worst)
    drawn = np.random.default_rng(_SEED).choice(others, min(RANDOM, len(others)), replace=False)
    reasons: list[tuple[_Reason, Sequence[int]]] = [("worst", worst.tolist()), ("random", sorted(drawn.tolist()))]
    return tuple(_exemplar(tree, reason, place) for reason, places in reasons for place in places)


def _exemplar(tree: Tree, reason: _Reason, place: int) -> Exemplar:
    samples = tree.given.samples
    assert samples is not None
    rows = np.flatnonzero(samples.of == place).tolist()
    callees = [_callee(tree, int(samples.callee[row]), int(samples.k[row]), float(samples.y[row])) for row in rows]
    features = {
        name: float(column[place]) for name, column in samples.features.items() if column[place] == column[place]
    }
    return Exemplar(
        reason,
        samples.run[place],
        int(samples.sequence[place]),
        int(samples.started[place]),
        float(samples.x[place]),
        float(samples.time[place]),
        float(samples.cpu[place]),
        tree.steps(tree.path(int(samples.node[place]))),
        tuple(sorted(callees, key=lambda one: -one.y)),
        dict(sorted(features.items())),
    )


def _callee(tree: Tree, node: int, k: int, y: float) -> Callee:
    component: Component | None = tree.given.components[tree.component[node]] if node >= 0 else None
    return Callee(component, tree.line[node] if node >= 0 else 0, k, y)


def explain(tree: Tree, component: int, options: Options, deadlines: Sequence[float] = ()) -> Explanation | None:
    """The explanation of a function by its number; None where no invocation completed."""
    heads = contexts_of(tree, component)
    if not heads:
        return None
    parts, some = parts_of(tree, heads), sampled(tree, heads)
    stats = stats_by_metric(tree, heads)
    off, low, high = off_cpu_interval(tree, heads, stats, options)
    total, metric = parts.total, tree.given.metric
    sources = _sources(tree, parts, underliers(tree, heads, options))
    misses, bounds = _deadlines(tree, heads, parts, options, deadlines)
    return Explanation(
        tree.given.components[component],
        metric,
        total.n,
        total.mean,
        total.cov,
        is_high(tree, heads, total, options),
        {name: one.cov for name, one in stats.items()},
        cause(stats, metric.name, off, options, tree.noise),
        off,
        low,
        high,
        _parts(tree, parts),
        tuple(tuple(None if c is None else c / total.n**2 for c in row) for row in parts.covariance),
        blocks(parts.covariance, parts.net, total.n, options.theta),
        sources,
        budget(tree, parts, some, sources),
        _contexts(tree, heads, options),
        exemplars(tree, some),
        misses,
        bounds,
    )


def contexts_of(tree: Tree, component: int) -> list[int]:
    """Nodes of a function with completed invocations."""
    return [node for node in range(1, tree.size) if tree.component[node] == component and tree.stats[node].n]


def _parts(tree: Tree, parts: Parts) -> tuple[Part, ...]:
    total, result = parts.total, []
    for place, (key, sums, net) in enumerate(zip(parts.keys, parts.sums, parts.net, strict=True)):
        own = parts.covariance[place][place]
        share = own / total.spread if own is not None and total.spread else None
        nodes = parts.nodes[place]
        result.append(
            Part(
                None if key == OWN else tree.given.components[key[1]],
                tree.line[nodes[0]] if nodes else 0,
                key[0],
                sums.y / total.n,
                None if own is None else own / total.n**2,
                share,
                net / total.spread if total.spread else 0.0,
                None if key == OWN else split(sums, total.n),
            )
        )
    return tuple(result)


def _sources(tree: Tree, parts: Parts, segments: Sequence[Segment]) -> tuple[Source, ...]:
    total, found = parts.total, []
    for segment in segments:
        sums, nodes = segment.sums, segment.nodes
        squares, net = total.n * sums.yy - sums.y**2, total.n * sums.yx - sums.y * total.x
        component = tree.given.components[tree.component[nodes[-1]]]
        shares = (sums.y / total.n, squares / total.spread, net / total.spread)
        found.append(Source(tree.steps(nodes), component, *shares, split(sums, total.n)))
    return tuple(sorted(found, key=lambda one: -one.cf_net))


def _contexts(tree: Tree, heads: Sequence[int], options: Options) -> tuple[Context, ...]:
    order = sorted(heads, key=lambda node: (-tree.stats[node].sigma * tree.stats[node].n, tree.rank[node]))
    return tuple(_context(tree, node, options) for node in order)


def _context(tree: Tree, node: int, options: Options) -> Context:
    stats = tree.stats[node]
    high = is_high(tree, (node,), stats, options)
    return Context(tree.steps(tree.path(node)), stats.n, stats.mean, stats.cov, high)


def _deadlines(
    tree: Tree, heads: Sequence[int], parts: Parts, options: Options, deadlines: Sequence[float]
) -> tuple[tuple[Deadline, ...], tuple[Bound, ...]]:
    seen = observed(tree, heads)
    if seen is None:
        return (), ()
    misses = tuple(miss(one, parts.total, seen) for one in deadlines)
    return misses, tuple(bound(one, parts.total, seen) for one in options.probabilities)
