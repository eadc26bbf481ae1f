"""The latency of coroutines and async generators: from the call to the result, suspension included, by what they await."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from perflaw.learn.variance.moments import Link, Stats, pooled, quantile
from perflaw.learn.variance.parts import sampled_invocations
from perflaw.learn.variance.tail import TAIL_QUANTILE, CostDistribution
from perflaw.learn.variance.tree import Options, Tree
from perflaw.types.call_trees import log_bucket
from perflaw.types.recordings import TIME, WAITING
from perflaw.types.variance import Await, Latency, VaryingLatency

MAX_AWAITS: Final = 8
"""Number of awaits that are named, those of the largest shares."""


def latency_of(tree: Tree, heads: Sequence[int], options: Options) -> tuple[Latency, Stats, CostDistribution] | None:
    """The latency of some contexts of one coroutine or async generator, with its moments and distribution as sampled.

    None if the tree is of another metric, or if these are never suspended or other functions.
    """
    samples, sampled = tree.call_tree.samples, sampled_invocations(tree, heads)
    if samples is None or sampled is None or samples.awaits is None or tree.call_tree.metric.name != TIME.name:
        return None
    waited = samples.awaits[sampled.places]
    if not waited.any():
        return None
    order = np.argsort(sampled.x + waited, kind="stable")
    latency, waited, weight = (sampled.x + waited)[order], waited[order], sampled.weight[order]
    n = tree.total(heads).n
    weight = weight * n / weight.sum()  # samples stand for all invocations
    stats = Stats(n, round(float(weight @ latency)), round(float(weight @ latency**2)))
    buckets = np.array([log_bucket(int(x)) for x in latency.tolist()], dtype=np.float64)
    shares = weight @ ((latency - stats.mean) * waited) / n / stats.variance if stats.variance > 0 else 0.0
    p50, p99 = (quantile(latency, weight, p) for p in (0.5, TAIL_QUANTILE))
    mean_waited = float(weight @ waited) / n
    found = Latency(
        stats.mean,
        stats.cov,
        n >= options.least and stats.is_high(options.high, tree.noise),
        p50,
        p99,
        float(shares),
        _awaits(tree, heads, stats, mean_waited, float(shares)),
    )
    return found, stats, CostDistribution(latency, weight, buckets)


def varying_latencies(tree: Tree, options: Options) -> tuple[VaryingLatency, ...]:
    """Coroutines and async generators whose latency varies highly, the greatest impact first.

    Those with less than β of the greatest impact are left out, as in patterns. Empty if the tree is of another metric.
    """
    samples = tree.call_tree.samples
    if samples is None or samples.awaits is None:
        return ()
    found = []
    for number in sorted({tree.component[node] for node in samples.node[samples.awaits > 0].tolist()}):
        heads = tree.contexts(number)
        measured = latency_of(tree, heads, options) if heads else None
        if measured and measured[0].high:
            latency, stats, _ = measured
            component = tree.call_tree.components[number]
            found.append(VaryingLatency(component, stats.n, stats.sigma * stats.n, latency))
    most = max((one.impact for one in found), default=0.0)
    kept = [one for one in found if one.impact >= options.trim * most]
    return tuple(sorted(kept, key=lambda one: (-one.impact, one.component.name)))


def _awaits(tree: Tree, heads: Sequence[int], stats: Stats, waited: float, share: float) -> tuple[Await, ...]:
    """The coroutines that are awaited, and all else; their shares add up to ``share``, their means to ``waited``.

    Var(ΣW) of K calls that wait W each is E[K]·Var(W) + Var(K)·E[W]².
    """
    samples, found = tree.call_tree.samples, list[Await]()
    assert samples is not None and samples.awaits is not None
    coroutines = set(samples.node[samples.awaits > 0].tolist())
    callees: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for head in heads:
        for node in tree.children[head]:
            if node in coroutines and node in tree.links[head]:
                callees.setdefault(tree.key(node), []).append((head, node))
    for ends in callees.values():
        calls: Link = pooled(tree.links[head][node] for head, node in ends)
        pseudo = [one for _, node in ends for one in tree.children[node] if tree.name(tree.component[one]) == WAITING]
        total = tree.total(node for _, node in ends)
        sums = tree.total(pseudo)
        each = Stats(max(total.n, 1), sums.x, sums.xx)  # calls that were not suspended waited for 0 ns
        mean_calls = calls.k / stats.n
        variance = mean_calls * each.variance + (calls.kk / stats.n - mean_calls**2) * each.mean**2
        one = ends[0][1]
        component = tree.call_tree.components[tree.component[one]]
        of_variance = min(variance / stats.variance, 1.0) if stats.variance > 0 else 0.0
        found.append(Await(component, tree.line[one], mean_calls * each.mean, of_variance))
    found = sorted(found, key=lambda one: (-one.share, one.line))[:MAX_AWAITS]
    if (whole := sum(one.share for one in found)) > share > 0:  # awaits that depend on each other
        found = [Await(one.component, one.line, one.mean, one.share * share / whole) for one in found]
    rest = Await(
        None, 0, max(waited - sum(one.mean for one in found), 0.0), max(share - sum(one.share for one in found), 0.0)
    )
    return tuple(sorted([*found, rest], key=lambda one: -one.share))
