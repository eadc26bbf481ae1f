"""Why one function is sometimes slow, over all of its contexts."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.learn.variance.blocks import blocks
from perflaw.learn.variance.budget import budget
from perflaw.learn.variance.causes import cause, off_cpu_interval, stats_by_metric
from perflaw.learn.variance.deadlines import bound, miss, observed
from perflaw.learn.variance.exemplars import exemplars
from perflaw.learn.variance.high import is_high
from perflaw.learn.variance.mechanism import split
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.parts import OWN, Parts, parts_of
from perflaw.learn.variance.sampled import sampled
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.underliers import Segment, underliers
from perflaw.types.deadlines import Bound, Deadline
from perflaw.types.explanations import Context, Explanation, Part, Source


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
