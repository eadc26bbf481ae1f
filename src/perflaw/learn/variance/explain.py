"""Why one function is sometimes slow, over all of its contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from perflaw.learn.variance.latency import latency_of
from perflaw.learn.variance.moments import Stats, split
from perflaw.learn.variance.parts import (
    OWN,
    Parts,
    SampledInvocations,
    find_cause,
    off_cpu_interval,
    off_cpu_reasons,
    off_cpu_share,
    parts_of,
    sampled_invocations,
    stats_by_metric,
)
from perflaw.learn.variance.patterns import underliers
from perflaw.learn.variance.tail import (
    CostDistribution,
    budget,
    cost_distribution,
    exceeded_deadline,
    missed_deadlines,
)
from perflaw.learn.variance.tree import Options, Tree, is_high, tracing_hides
from perflaw.types.variance import Block, Callee, Context, Exemplar, Explanation, Part, Relation, Source


def explain(
    tree: Tree,
    components: Sequence[int],
    options: Options,
    deadlines: Callable[[CostDistribution], Sequence[float]] = lambda _: (),
) -> list[Explanation | None]:
    """The explanation of each of some functions, given by their numbers; None if no invocation completed.

    ``deadlines`` chooses those of a function, in the unit of the metric.
    """
    explained = [_explain(tree, component, options) for component in components]
    asked = {
        place: (deadlines(costs), measured, costs)
        for place, (_, measured, costs) in ((place, one) for place, one in enumerate(explained) if one)
        if costs
    }
    missed = dict(zip(asked, missed_deadlines(list(asked.values())), strict=True))
    return [one and replace(one[0], deadlines=missed.get(place, ())) for place, one in enumerate(explained)]


def _explain(tree: Tree, component: int, options: Options) -> tuple[Explanation, Stats, CostDistribution | None] | None:
    """The explanation of a function without deadlines, and what deadlines are held against."""
    heads = tree.contexts(component)
    if not heads:
        return None
    parts, sampled = parts_of(tree, heads), sampled_invocations(tree, heads)
    stats = stats_by_metric(tree, heads)
    off_cpu = off_cpu_share(tree, heads, stats, options)
    off_cpu_low, off_cpu_high = (None, None) if off_cpu is None else off_cpu_interval(tree, heads)
    off_for = {} if off_cpu is None else off_cpu_reasons(tree, heads)
    total, metric = parts.total, tree.call_tree.metric
    sources = []
    for segment in underliers(tree, heads, options):
        sums, nodes = segment.sums, segment.nodes
        source = tree.call_tree.components[tree.component[nodes[-1]]]
        shares = (segment.y / total.n, sums.spread(total.n) / total.spread, segment.net / total.spread)
        sources.append(Source(tree.steps(nodes), source, *shares, split(sums, total.n)))
    sources.sort(key=lambda source: -source.cf_net)
    contexts = []
    for node in sorted(heads, key=lambda node: (-tree.stats[node].sigma * tree.stats[node].n, tree.rank[node])):
        one = tree.stats[node]
        high = is_high(tree, (node,), one, options)
        contexts.append(Context(tree.steps(tree.path(node)), one.n, one.mean, one.cov, high))
    costs, measured = cost_distribution(tree, heads), total
    if latency := latency_of(tree, heads, options):
        _, measured, costs = latency
    explanation = Explanation(
        tree.call_tree.components[component],
        metric,
        total.n,
        total.mean,
        total.cov,
        is_high(tree, heads, total, options),
        {name: one.cov for name, one in stats.items()},
        find_cause(stats, metric.name, off_cpu, off_for, options, tree.noise),
        off_cpu,
        off_cpu_low,
        off_cpu_high,
        off_for,
        _parts(tree, parts),
        tuple(tuple(None if c is None else c / total.n**2 for c in row) for row in parts.covariance),
        blocks(parts.covariance, parts.net, total.n, options.theta),
        tuple(sources),
        budget(tree, parts, sampled, sources),
        tuple(contexts),
        _exemplars(tree, component, sampled),
        (),
        tuple(exceeded_deadline(each, measured, costs) for each in options.probabilities) if costs else (),
        latency=latency[0] if latency else None,
        tracing_ns=tracing_hides(tree, heads, total, options),
    )
    return explanation, measured, costs


def _parts(tree: Tree, parts: Parts) -> tuple[Part, ...]:
    total, result = parts.total, []
    for place, (key, nodes, sums, net) in enumerate(zip(parts.keys, parts.nodes, parts.sums, parts.net, strict=True)):
        own = parts.covariance[place][place]
        result.append(
            Part(
                None if key == OWN else tree.call_tree.components[key[1]],
                tree.line[nodes[0]] if nodes else 0,
                key[0],
                sums.y / total.n,
                None if own is None else own / total.n**2,
                own / total.spread if own is not None and total.spread else None,
                net / total.spread if total.spread else 0.0,
                None if key == OWN else split(sums, total.n),
            )
        )
    return tuple(result)


# ---- Minimal contributing sets (§2): parts that vary together, and the fewest that nearly explain their variance.

Matrix = Sequence[Sequence[int | None]]
MAX_EXHAUSTIVE: Final = 12
"""Number of members of a block up to which every subset is tried."""
TOLERANCE: Final = 0.2
"""A subset explains its block if its variance differs from the block's by at most this fraction."""


def blocks(covariance: Matrix, net: Sequence[int], n: int, theta: float) -> tuple[Block, ...]:
    """The blocks of parts joined by 2|C_ij| ≥ θσ², in the order of their first members.

    ``covariance`` and ``net`` are N² times the covariances of the parts and their shares of the variance; ``n`` is N.

    >>> c = [[100, 0, 0], [0, 81, -81], [0, -81, 81]]
    >>> [(one.parts, one.variance, one.minimal) for one in blocks(c, [100, 0, 0], 1, 0.1)]
    [((0,), 100.0, (0,)), ((1, 2), 0.0, None)]
    """
    whole, count = sum(net), len(covariance)
    block_of = list(range(count))  # the first member of each part's block
    for i, row in enumerate(covariance):
        for j, one in enumerate(row):
            if whole > 0 and 2 * abs(one or 0) >= theta * whole and block_of[i] != block_of[j]:
                first, other = sorted((block_of[i], block_of[j]))
                block_of = [first if block == other else block for block in block_of]
    found = []
    for first in sorted(set(block_of)):
        members = tuple(place for place, block in enumerate(block_of) if block == first)
        variance, share = _variance(covariance, members), sum(net[i] for i in members)
        minimal = _minimal(covariance, members) if whole > 0 and share >= theta * whole else None
        net_share = share / whole if whole else 0.0
        # Whether the products of the members are (nearly) all negative, all positive, or both.
        products = [covariance[i][j] or 0 for i, j in combinations(minimal or members, 2)]
        negative, positive = -sum(p for p in products if p < 0), sum(p for p in products if p > 0)
        relation: Relation = "cancel" if negative > positive else "in step"
        if not products:
            relation = "alone"
        elif min(negative, positive) > TOLERANCE * max(negative, positive):
            relation = "mixed"
        found.append(Block(members, variance / (n * n), net_share, minimal, relation))
    return tuple(found)


def _variance(covariance: Matrix, members: Sequence[int]) -> int:
    """N²·Var of the sum of some parts; a product that was not kept counts as 0."""
    return sum(covariance[i][j] or 0 for i in members for j in members)


def _minimal(covariance: Matrix, members: tuple[int, ...]) -> tuple[int, ...]:
    """The smallest subset with nearly the block's variance; of several the one with the largest variance.

    In large blocks members are left out one after the other, always the one that changes the variance least.
    """
    goal = _variance(covariance, members)
    if len(members) <= MAX_EXHAUSTIVE:
        for size in range(1, len(members)):
            variances = {subset: _variance(covariance, subset) for subset in combinations(members, size)}
            near = [subset for subset, variance in variances.items() if abs(variance - goal) <= TOLERANCE * goal]
            if near:
                return max(near, key=lambda subset: variances[subset])
        return members
    kept, variance = list(members), goal
    while len(kept) > 1:
        # Without i the variance loses its square and, twice, its products with the others.
        without = [variance - 2 * sum(covariance[i][j] or 0 for j in kept) + (covariance[i][i] or 0) for i in kept]
        best = min(range(len(kept)), key=lambda place: abs(without[place] - goal))
        if abs(without[best] - goal) > TOLERANCE * goal:
            break
        variance = without[best]
        del kept[best]
    return tuple(kept)


# ---- Invocations to look at.

MAX_WORST: Final = 8
"""Number of the slowest sampled invocations."""
MAX_RANDOM: Final = 4
"""Number of invocations drawn from the uniform part of the sample."""
_SEED: Final = 1


def _exemplars(tree: Tree, component: int, sampled: SampledInvocations | None) -> tuple[Exemplar, ...]:
    """The slowest invocations, the slowest first, then some of the uniform sample."""
    if sampled is None:
        return ()
    worst = sampled.places[::-1][:MAX_WORST]
    others = np.setdiff1d(sampled.places[sampled.samples.uniform[sampled.places]], worst)
    drawn = np.random.default_rng(_SEED).choice(others, min(MAX_RANDOM, len(others)), replace=False)
    samples, exemplars = sampled.samples, []
    places = [*worst.tolist(), *sorted(drawn.tolist())]
    features = {name: column[places].tolist() for name, column in tree.features.get(component, {}).items()}
    for number, place in enumerate(places):
        callees = []
        for row in tree.callees.of([place]).tolist():
            node, k, y = int(samples.callee[row]), int(samples.k[row]), float(samples.y[row])
            called = tree.call_tree.components[tree.component[node]] if node >= 0 else None
            callees.append(Callee(called, tree.line[node] if node >= 0 else 0, k, y))
        exemplars.append(
            Exemplar(
                "worst" if number < len(worst) else "random",
                samples.run[place],
                int(samples.sequence[place]),
                int(samples.started[place]),
                float(samples.x[place]),
                float(samples.time[place]),
                float(samples.cpu[place]),
                tree.steps(tree.path(int(samples.node[place]))),
                tuple(sorted(callees, key=lambda callee: -callee.y)),
                {name: values[number] for name, values in features.items() if not np.isnan(values[number])},
            )
        )
    return tuple(exemplars)
