"""Why one function is sometimes slow, over all of its contexts, and which features drive it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from perflaw.laws.distributions import mean as law_mean
from perflaw.laws.printing import learnt_text
from perflaw.learn.variance.latency import latency_of
from perflaw.learn.variance.moments import Floats, split
from perflaw.learn.variance.parts import (
    OWN,
    Parts,
    SampledInvocations,
    find_cause,
    off_cpu_interval,
    off_cpu_reasons,
    off_cpu_share,
    parts_matrix,
    parts_of,
    sampled_invocations,
    stats_by_metric,
)
from perflaw.learn.variance.patterns import underliers
from perflaw.learn.variance.tail import budget, cost_distribution, exceeded_deadline, missed_deadlines
from perflaw.learn.variance.tree import Options, Tree, is_high, tracing_hides
from perflaw.types.laws import Law
from perflaw.types.variance import Block, Callee, Context, Driver, Exemplar, Explanation, Part, Relation, Source


def explain(tree: Tree, component: int, options: Options, deadlines: Sequence[float] = ()) -> Explanation | None:
    """The explanation of a function, given by its number; None if no invocation completed.

    ``deadlines`` are in the unit of the metric.
    """
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
    return Explanation(
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
        missed_deadlines(deadlines, measured, costs) if costs and deadlines else (),
        tuple(exceeded_deadline(each, measured, costs) for each in options.probabilities) if costs else (),
        latency=latency[0] if latency else None,
        tracing_ns=tracing_hides(tree, heads, total, options),
    )


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
        for row in np.flatnonzero(samples.of == place).tolist():
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


# ---- What drives a varying part: the feature of the arguments that its calls or its cost follow.

MAX_PARTS: Final = 3
"""Number of parts whose driver is looked for, those of the largest shares."""
MAX_ROWS: Final = 300
"""Number of sampled invocations that a law is learnt from."""
MAX_SLOWEST: Final = 32
"""Number of the slowest invocations that are always among them."""
MIN_ROWS: Final = 20
"""Number of sampled invocations from which on a law is learnt."""
MIN_READ: Final = 0.9
"""Fraction of the sample in which a feature must have been read."""
MAX_VALUES: Final = 6
"""Number of distinct values of a feature that are too few for a law."""
MIN_PER_VALUE: Final = 3
"""Number of invocations of each of these values."""
MIN_R2: Final = 0.5
"""Share of the variance that a driver must explain."""


def drivers(tree: Tree, heads: Sequence[int], options: Options) -> tuple[Driver, ...]:
    """Drivers of the largest parts of some contexts of one function, by the law learner; none if no law holds."""
    from perflaw.learn.series import Options as LawOptions  # the law learner takes long to import
    from perflaw.learn.series import Series, learn

    sampled = sampled_invocations(tree, heads)
    if sampled is None or not sampled.has_callee_costs:
        return ()
    columns = tree.features.get(tree.component[heads[0]], {})
    read = np.zeros(len(sampled), np.bool_)
    for values in columns.values():
        read |= ~np.isnan(values[sampled.places])
    rows = np.flatnonzero(read)
    if len(rows) < MIN_ROWS:
        return ()
    if len(rows) > MAX_ROWS:  # the slowest, and others spread evenly over the sorted costs
        spread = np.linspace(0, len(rows) - 1, MAX_ROWS - MAX_SLOWEST).astype(np.intp)
        rows = np.unique(np.concatenate([rows[-MAX_SLOWEST:], rows[spread]]))

    features = {}  # those that were read in (nearly) all rows and vary; the median stands for missing values
    for name, values in columns.items():
        mine = values[sampled.places][rows]
        read = ~np.isnan(mine)
        if read.mean() >= MIN_READ and len(np.unique(mine[read])) > 1:
            features[name] = np.where(read, mine, np.median(mine[read]))

    parts = parts_of(tree, heads)
    if not features or parts.total.spread <= 0:
        return ()
    samples = sampled.samples
    costs = parts_matrix(tree, sampled, parts.keys, np.nan_to_num(samples.y), sampled.x)
    calls = parts_matrix(tree, sampled, parts.keys, samples.k.astype(np.float64), np.zeros(len(sampled)))
    metric, unit, net = tree.call_tree.metric.name, tree.call_tree.metric.unit, parts.net
    significant = [place for place, each in enumerate(net) if each >= options.theta * parts.total.spread]
    responses = []  # what varies of each of the largest significant parts, in words, its unit, and its values (n,)
    for place in sorted(significant, key=lambda place: -net[place])[:MAX_PARTS]:
        mechanism, name = parts.mechanism(place), tree.name(parts.keys[place][1])
        if parts.keys[place] == OWN:
            responses.append((f"own {metric}", unit, costs[:, place]))
        elif mechanism == "cost per call":
            responses.append((f"{metric} in {name}", unit, costs[:, place]))
        else:
            responses.append((f"calls of {name}", "", calls[:, place]))

    series = [Series(name, y[rows], features, weights=sampled.weight[rows]) for name, _, y in responses]
    laws = [one.law for one in learn(series, options=LawOptions(several=False, regimes=False))] if series else []
    found: list[Driver | None] = []
    for (name, unit, _), one, law in zip(responses, series, laws, strict=True):
        if law.verdict == "law" and law.features and law.r2 is not None and law.r2 >= MIN_R2:
            found.append(_driver_by_law(name, unit, law, law.r2, features))
        else:
            found.append(_driver_by_value(name, unit, one.y, sampled.weight[rows], features))
    return tuple(driver for driver in found if driver)


def _pairs(x: Floats, means: Floats) -> tuple[tuple[float, float], ...]:
    return tuple((float(value), float(mean)) for value, mean in zip(x, means, strict=True))


def _driver_by_law(response: str, unit: str, law: Law, r2: float, features: Mapping[str, Floats]) -> Driver:
    """The first feature of a law, with the costs that follow from its values.

    A law has a second feature where that decides whether there is a cost at all; its median stands for it.
    """
    name = law.features[0]
    x = np.unique(np.percentile(features[name], (5, 50, 95), method="nearest"))
    point = {one: np.full(x.shape, np.median(features[one])) for one in law.features} | {name: x}
    means = np.broadcast_to(law_mean(law.expression, point), x.shape)
    return Driver(name, response, r2, learnt_text(law.expression), unit, _pairs(x, means))


def _driver_by_value(response: str, unit: str, y: Floats, weight: Floats, features: dict[str, Floats]) -> Driver | None:
    """A feature with too few values for a law, whose means at each value explain most of the variance."""
    best: Driver | None = None
    for name, x in features.items():
        values, group = np.unique(x, return_inverse=True)
        if len(values) > MAX_VALUES or np.bincount(group).min() < MIN_PER_VALUE:
            continue
        means = np.bincount(group, weight * y) / np.bincount(group, weight)
        centred = y - weight @ y / weight.sum()
        whole = float(weight @ centred**2)
        r2 = 1 - float(weight @ (y - means[group]) ** 2) / whole if whole > 0 else 0.0
        if r2 >= MIN_R2 and (best is None or r2 > best.r2):
            best = Driver(name, response, r2, "", unit, _pairs(values, means))
    return best
